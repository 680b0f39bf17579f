package decide

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/updater"
	"bijou/updater/record"
)

// maxDecision limits the bytes that one decision about a fleet of 600 servers writes.
const maxDecision = 64 << 10

// writtenSize returns the size of the changes as the store counts it.
func writtenSize(t *testing.T, changes []updater.Change) (n int) {
	t.Helper()
	for _, c := range changes {
		n += len(c.Key)
		if c.Value == nil {
			continue
		}
		value, err := json.Marshal(c.Value)
		if err != nil {
			t.Fatal(err)
		}
		n += len(value)
	}
	return n
}

// fleetOf returns a fleet of n servers in the middle of an update, with the longest numbers.
func fleetOf(n int) Snapshot {
	s := running()
	s.Servers = nil
	for i := range n {
		s.Servers = append(s.Servers, record.MaxLRN-n+1+i)
	}
	s.Current.Servers = s.Servers
	s.Entry.Servers = s.Servers
	s.Present, s.Inventories = map[int]record.Presence{}, map[int]record.Inventory{}
	return s
}

// longText returns a unique text that grows when it is encoded as JSON.
func longText(i, length int) string {
	return fmt.Sprintf("%d: ", i) + strings.Repeat("<\x01\"é\\", length/5)
}

// fleets lists the sizes of fleets for which every change must fit into a transaction.
var fleets = []int{1, 3, 180, 600}

// TestStopsAreBounded checks the size of the changes for every way in which an update of many servers can
// stop.
func TestStopsAreBounded(t *testing.T) {
	for name, change := range map[string]func(s *Snapshot, length int){
		"all fail, each for its own reason": func(s *Snapshot, length int) {
			for i, lrn := range s.Servers {
				w := failed(1)
				w.Message = longText(i, length)
				s.Workers[lrn] = w
			}
		},
		"all fail for one reason": func(s *Snapshot, length int) {
			for _, lrn := range s.Servers {
				w := failed(1)
				w.Message = longText(0, length)
				s.Workers[lrn] = w
			}
		},
		"one fails, and all others have waited for it": func(s *Snapshot, length int) {
			for i, lrn := range s.Servers {
				w := failed(1)
				w.Message = longText(i, length)
				if i > 0 {
					w.WaitedFor = s.Servers[:1]
				}
				s.Workers[lrn] = w
			}
		},
		"each has waited for all others": func(s *Snapshot, length int) {
			for i, lrn := range s.Servers {
				w := failed(1)
				w.Message, w.WaitedFor = longText(i, length), s.Servers
				s.Workers[lrn] = w
			}
		},
		"all hang, and say long what they do": func(s *Snapshot, length int) {
			s.Gate, s.Activities = opened(2), map[int]record.Activity{}
			for i, lrn := range s.Servers {
				s.Workers[lrn] = at(2)
				s.Activities[lrn] = doing("", longText(i, length))
			}
		},
		"all have another plan": func(s *Snapshot, length int) {
			for i, lrn := range s.Servers {
				w := at(2)
				w.Plan, w.StepName = longText(i, length), longText(i, length)
				s.Workers[lrn] = w
			}
			s.Current.Plan = "the release's"
		},
		"none comes up after its installation": func(s *Snapshot, length int) {
			s.HandingOver = map[int]time.Time{}
			for _, lrn := range s.Servers {
				w := at(0)
				w.StepName = record.HandOverStep
				s.Workers[lrn] = w
				s.HandingOver[lrn] = t0()
			}
		},
		"by hand, with a long reason": func(s *Snapshot, length int) {
			s.Current.Stop, s.Current.Why = true, longText(0, length)
		},
		"retried two hundred times": func(s *Snapshot, length int) {
			for i := range 200 {
				at := t0()
				s.Entry.Begin(i+1, "somebody", t0())
				s.Entry.End(record.Attempt{Number: i + 1, Why: longText(i, min(length, record.MaxText/10)), AtFault: record.Blame(s.Servers), EndedAt: &at})
			}
			s.Current.Attempt = 201
			for i, lrn := range s.Servers {
				w := failed(201)
				w.Message = longText(i, length)
				s.Workers[lrn] = w
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range fleets {
				for _, length := range []int{0, 1500, 100_000 / n} {
					s := fleetOf(n)
					change(&s, length)
					s.Current.Missing = s.Servers
					a := Next(s, t0().Add(2*time.Hour))
					if a.Verb == Warn { // warns about the servers that are back
						s.Current.Missing = nil
						a = Next(s, t0().Add(2*time.Hour))
					}
					if a.Verb != Stop {
						t.Fatalf("%d servers, %d bytes each: %s: %s", n, length, a.Verb, a.Why)
					}
					if size := writtenSize(t, a.Changes); size > maxDecision {
						t.Errorf("%d servers, %d bytes each: %d bytes are written", n, length, size)
					}
					if len(a.Why) > record.MaxText {
						t.Errorf("%d servers, %d bytes each: the reason has %d bytes", n, length, len(a.Why))
					}
				}
			}
		})
	}
}

// TestRandomChangesAreBounded checks random fleets. Every decision about a fleet of 600 servers must stay
// within the limit, and the same decision about 2,000 servers must fit into a transaction.
func TestRandomChangesAreBounded(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 0))
		n, limit := 600, maxDecision
		if seed == 0 {
			n, limit = 2000, store.MaxBytes
		}
		s := fleetOf(n)
		randomize(&s, r)
		for range 5 {
			a := Next(s, t0().Add(time.Duration(r.IntN(7200))*time.Second))
			if size := writtenSize(t, a.Changes); size > limit || len(a.Changes) > store.MaxOps/2 {
				t.Fatalf("seed %d, %d servers, %s: %d changes with %d bytes: %.300s", seed, n, a.Verb, len(a.Changes), size, a.Why)
			}
			applyTo(&s, a.Changes)
		}
	}
}

func randomize(s *Snapshot, r *rand.Rand) {
	if r.IntN(2) == 0 {
		s.Current = ended(false)
		s.Current.Servers = s.Servers
	}
	s.Gate, s.Activities = opened(r.IntN(3)), map[int]record.Activity{}
	s.Absent, s.HandingOver = map[int]time.Time{}, map[int]time.Time{}
	share := []int{0, 2, 10, 1000}[r.IntN(4)]
	rarely := func() bool { return share > 0 && r.IntN(share) == 0 }

	for i, lrn := range s.Servers {
		w := at(2)
		if rarely() {
			w.Error, w.Message = true, longText(i%(1+r.IntN(600)), r.IntN(3000))
		}
		if rarely() {
			w.WaitedFor = s.Servers[:r.IntN(len(s.Servers))]
		}
		w.Finished = rarely() && !w.Error
		s.Workers[lrn] = w
		s.Activities[lrn] = doing([]string{"", record.WaitTurn, record.WaitQuorum}[r.IntN(3)], longText(i, r.IntN(3000)), s.Servers[r.IntN(len(s.Servers))])
		if rarely() {
			s.Absent[lrn] = t0()
		} else {
			s.Present[lrn] = record.Presence{Version: "1.1"}
		}
		differs := map[string][]string{}
		for c := range r.IntN(6) {
			differs[fmt.Sprint("component-", c)] = []string{longText(i, r.IntN(1500))}
		}
		s.Inventories[lrn] = record.Inventory{Request: 4, Differs: differs}
	}
}

// applyTo applies committed changes to the snapshot.
func applyTo(s *Snapshot, changes []updater.Change) {
	for _, c := range changes {
		switch v := c.Value.(type) {
		case record.Request:
			s.Current = &v
		case record.Gate:
			s.Gate = v
		case record.History:
			s.Entry = v
		case record.Degraded:
			s.Degraded = v
		}
	}
}

// TestReasonsOfMany checks the text for a stop that many servers have caused. Each reason appears once, with
// its servers. The first reasons are printed in full, and the others are counted.
func TestReasonsOfMany(t *testing.T) {
	s := fleetOf(180)
	long := strings.Repeat("x", 1400)
	for i, lrn := range s.Servers {
		w := failed(1)
		w.Message = long + " " + []string{"a", "b", "a", "c", "d"}[i%5]
		s.Workers[lrn] = w
	}
	a := Next(s, t0())
	first := record.MaxLRN - 179
	for _, want := range []string{
		fmt.Sprintf("server %d, step step: %s a; the same on server %d, %d, ", first, long, first+2, first+5),
		fmt.Sprintf("; server %d, step step: %s b; the same on server %d, ", first+1, long, first+6),
		fmt.Sprintf(" and 51 more; server %d, step step: %s b; ", first+1, long),
		"; and 36 more servers for other reasons, which neco status shows: ",
	} {
		if !strings.Contains(a.Why, want) {
			t.Errorf("it lacks %q:\n%s", want, a.Why)
		}
	}
	alert, _ := last(a.Changes).Value.(record.Alert)
	if len(alert.Servers) != 180 || !strings.Contains(alert.Message, a.Why+"; start neco-worker") {
		t.Errorf("the alert is about %d servers: %s", len(alert.Servers), alert.Message)
	}
}

// TestDegradedOfMany checks that a repair covers all components that differ, even if the record of
// differences contains only some of them. Known differences are not reported again.
func TestDegradedOfMany(t *testing.T) {
	s := fleetOf(600)
	s.Current = ended(false)
	s.Current.Servers = s.Servers
	s.Config.SurveyInterval = 20 * time.Second
	for i, lrn := range s.Servers {
		s.Present[lrn] = record.Presence{Version: "1.1"}
		s.Workers[lrn] = finished()
		s.Inventories[lrn] = record.Inventory{Request: 4, Differs: map[string][]string{fmt.Sprint("component-", i/200): {longText(i, 900)}}}
	}

	applyTo(&s, Next(s, t0()).Changes)
	a := Next(s, t0().Add(time.Minute)) // the decision covers all components
	applyTo(&s, a.Changes)
	if size := writtenSize(t, a.Changes); a.Verb != Warn || len(a.Changes) != 2 || size > maxDecision || s.Degraded.Count() != 600 || s.Degraded.More == 0 {
		t.Fatalf("%s: %d bytes, %d findings and %d more", a.Verb, size, len(s.Degraded.Findings), s.Degraded.More)
	}
	if a = Next(s, t0().Add(time.Hour)); a.Verb != Wait {
		t.Errorf("once more: %s: %s", a.Verb, a.Why)
	}
	s.Repair = &record.Repair{}
	a = Next(s, t0().Add(time.Hour))
	applyTo(&s, a.Changes)
	if want := []string{"component-0", "component-1", "component-2"}; a.Verb != Start || !slices.Equal(s.Current.Components, want) {
		t.Errorf("%s of %q", a.Verb, s.Current.Components)
	}
}

// TestManyAttempts checks that a history keeps its newest attempts and counts the others.
func TestManyAttempts(t *testing.T) {
	var h record.History
	for n := 1; n <= 300; n++ {
		h.Begin(n, "me", t0())
		at := t0()
		h.End(record.Attempt{Number: n, Result: record.Stopped, Why: longText(n, 2000), AtFault: []int{1, 2}, StartedAt: t0(), EndedAt: &at})
	}
	newest := h.Attempts[len(h.Attempts)-1]
	if len(h.Attempts) < 2 || h.Dropped+len(h.Attempts) != 300 || newest.Number != 300 || newest.Why != h.Why || h.Attempts[0].Number != h.Dropped+1 {
		t.Errorf("%d attempts and %d dropped, the newest is %d", len(h.Attempts), h.Dropped, newest.Number)
	}
}
