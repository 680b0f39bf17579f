package provision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
)

// TestAbsences checks the seconds at which the provisioner lists the provider's instances because agents of
// machines are gone.
func TestAbsences(t *testing.T) {
	for _, test := range []struct {
		name string
		gone []int // the seconds at which the machines' agents leave
		back int   // the second at which the first agent returns, or 0 if it does not
		want []int
	}{
		{"nobody is gone", nil, 0, nil},
		{"one is gone, later and later", []int{10}, 0, []int{11, 12, 14, 18, 26, 42, 74}},
		{"it is back at once", []int{10}, 10, nil},
		{"it comes back", []int{10}, 13, []int{11, 12}},
		{"several", []int{10, 12}, 0, []int{11, 12, 13, 14, 16, 18, 20, 26, 28, 42, 44, 74, 76}},
		{"one of several comes back", []int{10, 12}, 15, []int{11, 12, 13, 14, 16, 20, 28, 44, 76}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, begin := absentAgents{}, time.Now()
			var asked []int
			for second := range 200 {
				now := begin.Add(time.Duration(second) * time.Second)
				if a.untilDue(now, time.Hour) <= 0 {
					asked = append(asked, second)
					a.noteQuery(now)
				}
				for i, at := range test.gone {
					if at == second {
						a.noteGone(string(rune('1'+i)), now)
					}
				}
				if second == test.back {
					delete(a, "1")
				}
			}
			if diff := cmp.Diff(test.want, asked); diff != "" {
				t.Error(diff)
			}
			if len(a) > 0 {
				t.Errorf("left: %v", a)
			}
		})
	}
}

// TestHoldsNoteHelp checks that a start does not count as failed if the instance has run for as long as its
// backoff.
func TestHoldsNoteHelp(t *testing.T) {
	start, begin := Action{Verb: Start, Machine: "1"}, time.Now()
	for _, test := range []struct {
		name   string
		lasted time.Duration
		want   time.Duration
	}{
		{"not at all", 0, 2 * minRetryDelay},
		{"for a while", minRetryDelay - time.Second, 2 * minRetryDelay},
		{"for long", minRetryDelay, minRetryDelay},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := backoffs{}
			h.noteAttempt(start, begin)
			h.forgetIfHelped(start, begin.Add(test.lasted))
			again := begin.Add(minRetryDelay + state.SessionTTL)
			if due := h.filterDue([]Action{start}, again); !slices.Equal(due, []Action{start}) {
				t.Errorf("due: %v", due)
			}
			h.noteAttempt(start, again)
			if got := h.untilDue([]Action{start}, again, time.Hour); got != test.want {
				t.Errorf("held for %s, want %s", got, test.want)
			}
		})
	}
}

// agent announces a machine's agent in its own session.
func (w *world) agent(machine string) *state.Session {
	w.t.Helper()
	s, err := w.state.NewSession(w.t.Context())
	if err == nil {
		err = state.Announce(w.t.Context(), s, w.state.Update, state.MachineAgent(machine))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// leave ends an agent in an orderly way.
func (w *world) leave(s *state.Session) {
	w.t.Helper()
	if err := s.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// asks returns the number of times that the provisioner has listed the provider's instances.
func (w *world) asks() int {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	return w.calls.looks
}

// TestRunRestartsWhoseAgentIsGone checks that a machine whose agent is gone is restarted soon. The backoff
// does not grow, since the machine works for a long time after each start.
func TestRunRestartsWhoseAgentIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		for n := range 5 {
			agent := w.agent(id)
			w.settle(planInterval / 2)
			w.wantStarts(1 + n)
			if err := w.dummy.End("dummy-1-1"); err != nil {
				t.Fatal(err)
			}
			w.leave(agent)
			w.settle(2 * agentGrace)
			w.wantStarts(2 + n)
		}
		w.wantInstances("dummy-1-1")
	})
}

// TestRunRestartsWhatEndsAfterItsAgent checks that a machine is restarted even if its agent leaves
// before the instance ends.
func TestRunRestartsWhatEndsAfterItsAgent(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		agent := w.agent(id)
		w.settle(planInterval / 2)
		w.leave(agent)
		w.settle(5 * time.Second)
		if err := w.dummy.End("dummy-1-1"); err != nil {
			t.Fatal(err)
		}
		w.settle(5 * time.Second)
		w.wantStarts(2)
	})
}

// TestRunBearsOrderlyRestarts checks that the provisioner does not list the provider's instances if an agent
// comes back immediately.
func TestRunBearsOrderlyRestarts(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		agent := w.agent(id)
		w.settle(planInterval + time.Second) // a new minute has just begun
		before := w.asks()
		for range 10 {
			w.leave(agent)
			w.settle(agentGrace / 2)
			agent = w.agent(id)
			w.settle(2 * time.Second)
		}
		if n := w.asks() - before; n > 0 {
			t.Errorf("the provider was asked %d times", n)
		}
		w.wantStarts(1)
		w.leave(agent)
	})
}

// TestRunLeavesOtherAgentsAlone checks that the provisioner ignores machine 0's agent, since the provider
// does not start machine 0.
func TestRunLeavesOtherAgentsAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add()
		w.wantInstance("1", "dummy-1-1")
		agent := w.agent("0")
		w.settle(planInterval + time.Second)
		before := w.asks()
		w.leave(agent)
		w.settle(10 * time.Second)
		if n := w.asks() - before; n > 0 {
			t.Errorf("the provider was asked %d times", n)
		}
	})
}

// TestRunBearsAgentsThatNeverStay checks that the provisioner repeats starts less and less often if the agent
// runs only for a moment after each.
func TestRunBearsAgentsThatNeverStay(t *testing.T) {
	inWorld(t, func(w *world) {
		id := w.add()
		w.wantInstance(id, "dummy-1-1")
		for end := time.Now().Add(time.Hour); time.Now().Before(end); {
			if err := w.dummy.End("dummy-1-1"); err != nil {
				t.Fatal(err)
			}
			w.leave(w.agent(id))
			w.settle(state.SessionTTL)
		}
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		if n := len(w.calls.starts); n > 15 {
			t.Errorf("asked %d times to start it in an hour", n)
		}
	})
}
