package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bijou/updater/record"
)

// wellKept returns a fleet that has not changed since the last update.
func wellKept(change func(*Snapshot)) Snapshot {
	d := record.Digests{Sums: "sums", Plan: "plan"}
	s := base(func(s *Snapshot) {
		s.Current.Digests, s.Present = d, map[int]record.Presence{}
		s.Inventories, s.Workers = map[int]record.Inventory{}, map[int]record.Status{}
		for _, lrn := range s.Servers {
			s.Present[lrn] = record.Presence{Version: "1.1", Digests: d}
			s.Inventories[lrn] = record.Inventory{Request: s.Current.ID}
			s.Workers[lrn] = record.Status{Version: s.Current.Version, Request: s.Current.ID, Finished: true}
		}
	})
	change(&s)
	return s
}

// withFindings returns a fleet whose findings the leader has recorded.
func withFindings(change func(*Snapshot)) Snapshot {
	s := wellKept(change)
	s.Degraded.Findings = s.Findings(t0())
	for i := range s.Degraded.Findings {
		s.Degraded.Findings[i].Untold = false
	}
	return s
}

func TestFindings(t *testing.T) {
	differs := func(s *Snapshot, lrn int, component string) {
		s.Inventories[lrn] = record.Inventory{Request: s.Current.ID, Differs: map[string][]string{component: {"its artifact is old"}}}
	}
	present := func(s *Snapshot, p record.Presence) { s.Present[2] = p }
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		want   string
		repair string // the components to repair, or the reason why there is no repair
	}{
		"all is well":         {func(*Snapshot) {}, "", "none"},
		"digests are unknown": {func(s *Snapshot) { present(s, record.Presence{Version: "1.1"}) }, "", "none"},
		"no worker": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Absent = map[int]time.Time{2: t0().Add(-absenceTimeout)}
		}, "server 2: no worker is alive", "none"},
		"gone for a moment": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Absent = map[int]time.Time{2: t0()}
		}, "", "none"},
		"never seen": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Unseen, s.Absent = []int{2}, map[int]time.Time{2: t0().Add(-absenceTimeout)}
		}, "server 2: no worker has ever been seen", "none"},
		"just registered": {func(s *Snapshot) {
			delete(s.Present, 2)
			s.Unseen, s.Absent = []int{2}, map[int]time.Time{2: t0()}
		}, "", "none"},
		"an older version": {func(s *Snapshot) { present(s, record.Presence{Version: "1.0"}) }, "server 2: its worker has version 1.0, not 1.1", "[]"},
		"other files": {func(s *Snapshot) {
			present(s, record.Presence{Version: "1.1", Digests: record.Digests{Sums: "old", Plan: "plan"}})
		},
			"server 2: it was installed from different files: the digest of their SHA256SUMS is old, not sums", "[]"},
		"another plan": {func(s *Snapshot) { present(s, record.Presence{Version: "1.1", Digests: record.Digests{Plan: "old"}}) },
			"server 2: its plan differs from the release's: the digest is old, not plan", "[]"},
		"a component":         {func(s *Snapshot) { differs(s, 2, "cke") }, "server 2, cke: its artifact is old", "[cke]"},
		"two, on two servers": {func(s *Snapshot) { differs(s, 2, "cke"); differs(s, 10, "serf") }, "server 2, cke: its artifact is old|server 10, serf: its artifact is old", "[cke serf]"},
		"two, one of them is meant": {func(s *Snapshot) {
			differs(s, 2, "cke")
			differs(s, 10, "serf")
			s.Repair = &record.Repair{Servers: []int{10}}
		}, "server 2, cke: its artifact is old|server 10, serf: its artifact is old", "[serf]"},
		"of before the last update": {func(s *Snapshot) {
			s.Inventories[2] = record.Inventory{Request: 3, Differs: map[string][]string{"cke": {"its artifact is old"}}}
		}, "", "none"},
		"another server in its place": {func(s *Snapshot) { delete(s.Workers, 2) }, "server 2: it did not take part in the last update: a different host did, with the number of this server", "[]"},
		"no part of the last update": {func(s *Snapshot) {
			s.Current.Servers = []int{1, 10}
			present(s, record.Presence{Version: "1.0"})
		}, "", "none"},
	} {
		t.Run(what, func(t *testing.T) {
			s := withFindings(tt.change)
			var words []string
			for _, f := range s.Degraded.Findings {
				words = append(words, f.String())
			}
			if got := strings.Join(words, "|"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			repair := "none"
			if s.canRepair() {
				repair = fmt.Sprint(s.repairComponents(t0()))
			}
			if repair != tt.repair {
				t.Errorf("a repair of %s, want %s", repair, tt.repair)
			}
		})
	}
}

// TestNextIdle checks that the leader reports each difference once, together with the action that it
// takes.
func TestNextIdle(t *testing.T) {
	old := func(s *Snapshot) { s.Present[2] = record.Presence{Version: "1.0"} }
	auto := func(s *Snapshot) { old(s); s.Config.Repair = record.RepairAuto }
	window, err := record.ParseWindow("0 22 * * *; 6h; UTC")
	if err != nil {
		t.Fatal(err)
	}
	again := withFindings(func(s *Snapshot) { auto(s); s.Current.Repair = true })
	before := withFindings(auto)
	before.Current.Repair = true
	before.Degraded.Findings[0].Since = t0().Add(repairCooldown + time.Second)
	other := withFindings(auto)
	other.Current.Repair, other.Current.Components = true, []string{"cke"}
	for what, tt := range map[string]struct {
		s      Snapshot
		verb   Verb
		why    string
		alerts int
	}{
		"new":   {wellKept(old), Warn, "server 2: its worker has version 1.0, not 1.1", 1},
		"known": {withFindings(old), Wait, "up to date", 0},
		"over":  {with(withFindings(old), func(s *Snapshot) { s.Present[2] = s.Present[1] }), Warn, "again", 0},
		"asked": {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{Who: "me"} }), Start, "(repair)", 0},
		"asked, and no updates are taken": {withFindings(func(s *Snapshot) {
			old(s)
			s.Repair, s.Config.Env, s.Release = &record.Repair{}, record.EnvNone, ""
			s.Config.GitHubRepository = "bijou/boot"
		}), Start, "1.1 (repair)", 0},
		"asked in vain":    {withFindings(func(s *Snapshot) { s.Repair = &record.Repair{} }), Warn, "no repair: nothing differs", 0},
		"asked, paused":    {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{}; s.Pause = &record.Pause{} }), Wait, "paused", 0},
		"by itself":        {withFindings(auto), Start, "(repair: auto)", 0},
		"window closed":    {withFindings(func(s *Snapshot) { auto(s); s.Config.Window = window }), Wait, "the update window opens", 0},
		"one did not help": {again, Wait, "up to date", 0},
		"one did, before":  {before, Start, "(repair: auto)", 0},
		"one did not help, and its finding is new":  {with(again, func(s *Snapshot) { s.Degraded.Findings[0].Since = t0().Add(time.Minute) }), Wait, "up to date", 0},
		"one was about something else":              {other, Start, "(repair: auto)", 0},
		"asked for a server that no longer differs": {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{Servers: []int{1}} }), Warn, "no repair: nothing differs", 0},
		"asked for a server that differs":           {withFindings(func(s *Snapshot) { old(s); s.Repair = &record.Repair{Servers: []int{1, 2}} }), Start, "(repair)", 0},
		"a server is dead":                          {withFindings(func(s *Snapshot) { auto(s); delete(s.Present, 10) }), Wait, "up to date", 0},
	} {
		t.Run(what, func(t *testing.T) {
			a := Next(tt.s, t0())
			alerts := 0
			for _, c := range a.Changes {
				if alert, ok := c.Value.(record.Alert); ok && alert.Kind == record.AlertDegraded {
					alerts++
				}
			}
			if a.Verb != tt.verb || !strings.Contains(a.Why, tt.why) || alerts != tt.alerts {
				t.Errorf("%s: %q, %d alerts; want %s: %q, %d", a.Verb, a.Why, alerts, tt.verb, tt.why, tt.alerts)
			}
		})
	}
	if a := Next(withFindings(func(s *Snapshot) { s.Absent = map[int]time.Time{2: t0().Add(-time.Second)} }), t0()); !a.Until.Equal(t0().Add(absenceTimeout - time.Second)) {
		t.Errorf("it looks at one that has just gone at %s", a.Until)
	}
}

// TestFindingsWithoutLeader checks that without a leader a finding has the recorded time, and no time if no
// leader has recorded it.
func TestFindingsWithoutLeader(t *testing.T) {
	missing := func(s *Snapshot) {
		delete(s.Present, 2)
		s.Absent = map[int]time.Time{2: t0().Add(-absenceTimeout)}
	}
	for _, tt := range []struct {
		what string
		s    Snapshot
		want time.Time
	}{
		{"recorded", withFindings(missing), t0()},
		{"never recorded", wellKept(missing), time.Time{}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			for _, later := range []time.Duration{time.Hour, 2 * time.Hour} {
				const leads = false
				found := tt.s.CurrentFindings(t0().Add(later), leads).Findings
				if len(found) != 1 || !found[0].Since.Equal(tt.want) {
					t.Errorf("%s later: %+v, want since %s", later, found, tt.want)
				}
			}
		})
	}
}
