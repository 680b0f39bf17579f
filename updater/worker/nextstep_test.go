package worker

import (
	"strings"
	"testing"

	"bijou/updater/record"
)

// TestRepairSteps checks that a repair skips the steps of components that do not differ on any server, and
// does not wait at these steps.
func TestRepairSteps(t *testing.T) {
	of := func(step int, components ...string) Task {
		return NextTask(seated(step, func(s *Snapshot) { s.Current.Repair, s.Current.Components = true, components }), t0())
	}
	if got := of(1, "b"); got.Job != Write || got.Status.StepName != "a/update" {
		t.Errorf("the stop of what differs nowhere: %s, %+v", got.Job, got.Status)
	}
	if got := of(3, "a"); got.Job != Write || !got.Status.Finished {
		t.Errorf("the last step: %s, %+v", got.Job, got.Status)
	}
	for _, components := range [][]string{{"a"}, {"a", "b"}, nil} {
		if got := of(1, components...); got.Job != Idle {
			t.Errorf("of %v: %s, though others may have to stop it", components, got.Job)
		}
	}
}

// TestWorkersDigests checks which digests a worker accepts as its own, and the workers of which plans wait
// for each other at a barrier.
func TestWorkersDigests(t *testing.T) {
	of := func(own, wanted record.Digests, change func(*Snapshot)) Task {
		return NextTask(seated(0, func(s *Snapshot) {
			s.Digests, s.Current.Digests = own, wanted
			if change != nil {
				change(s)
			}
		}), t0())
	}
	want := record.Digests{Sums: "s", Plan: "p"}
	for what, tt := range map[string]struct {
		own, wanted record.Digests
		change      func(*Snapshot)
		job         Job
		says        string
	}{
		"the same":                         {want, want, nil, Write, ""},
		"the request knows none":           {want, record.Digests{}, nil, Write, ""},
		"nobody knows any":                 {record.Digests{}, record.Digests{}, nil, Write, ""},
		"by hand, the plan is the same":    {record.Digests{Plan: "p"}, want, nil, Write, ""},
		"by hand, the plan is another":     {record.Digests{Plan: "q"}, want, nil, Install, ""},
		"other files of the version":       {record.Digests{Sums: "t", Plan: "p"}, want, nil, Install, ""},
		"these, with another plan":         {record.Digests{Sums: "s", Plan: "q"}, want, nil, Write, "this server's plan has digest q, but release 1.1 has p"},
		"installed, but not known whereof": {record.Digests{Plan: "q"}, want, func(s *Snapshot) { s.Journal = did(0, Done) }, Write, "this server's plan has digest q"},
	} {
		t.Run(what, func(t *testing.T) {
			got := of(tt.own, tt.wanted, tt.change)
			if got.Job != tt.job || !strings.Contains(got.Status.Message, tt.says) || got.Status.Error != (tt.says != "") {
				t.Errorf("%s, %q; want %s, %q", got.Job, got.Status.Message, tt.job, tt.says)
			}
		})
	}

	plan := func(w record.Status, digest string) record.Status { w.Plan = digest; return w }
	met := func(other record.Status) bool {
		s := seated(2, func(s *Snapshot) {
			s.Digests.Plan = "p"
			s.Workers = map[int]record.Status{1: came(2), 2: came(2), 10: other}
		})
		return NextTask(s, t0()).Job == RunStep
	}
	for what, tt := range map[string]struct {
		other record.Status
		want  bool
	}{
		"the same plan":            {plan(came(2), "p"), true},
		"an unknown one":           {came(3), true},
		"another, at its step 3":   {plan(came(3), "q"), false},
		"another, and all is done": {plan(finished(), "q"), false},
		"another name":             {at(3), false},
		"no name, as before":       {func() record.Status { w := at(2); w.StepName = ""; return w }(), true},
	} {
		t.Run(what, func(t *testing.T) {
			if got := met(tt.other); got != tt.want {
				t.Errorf("they meet: %t", got)
			}
		})
	}
	gate := func(name, digest string) bool {
		g := opened(2)
		g.StepName, g.Plan = name, digest
		return NextTask(seated(2, func(s *Snapshot) { s.Digests.Plan, s.Gate = "p", g }), t0()).Job == RunStep
	}
	if !gate("", "") || !gate("a/update", "p") || !gate("b/update", "") || gate("a/stop", "p") || gate("a/update", "q") || gate("x", "") {
		t.Error("a gate lets pass whom it should not, or not whom it should")
	}

	if MoveGo != NextOnce(OnceSnapshot{Version: "1.1", Plan: "p", Leads: true, Contents: &record.Contents{Version: "1.1", Plan: "q", Success: true}}) {
		t.Error("contents of another plan are taken for these")
	}
}
