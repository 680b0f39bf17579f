package status

import (
	"testing"
	"time"

	"bijou/state"
)

// TestStatusOfWhatRuns checks that the status shows a running hook immediately. After ten minutes the message
// of the status shows the hook too, in addition to earlier failures. A hook of an agent that is gone is not
// shown.
func TestStatusOfWhatRuns(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	op := state.Op{Hook: state.Hook{Kind: "start", Name: "start", Relation: state.NoRelation}, Started: noon}
	held := op
	held.Holder = "anna@host (debug-hooks)"
	for _, tc := range []struct {
		name    string
		op      state.Op
		after   time.Duration
		gone    bool
		info    *UnitStateInfo
		running string
		message string
	}{
		{"at once", op, time.Second, false, nil, "start", ""},
		{"nearly ten minutes", op, 10*time.Minute - 1, false, nil, "start", ""},
		{"ten minutes", op, 10*time.Minute + 59*time.Second, false, nil, "start", "start has been running for 10m0s"},
		{"held", held, time.Hour, false, nil, "start", "start has been running for 1h0m0s, held by anna@host (debug-hooks)"},
		{"a retry", op, 11 * time.Minute, false, &UnitStateInfo{Hook: "start", Message: "exit code 1"}, "start", "exit code 1; start has been running for 11m0s"},
		{"its agent is gone", op, time.Hour, true, nil, "", ""},
		{"an action", state.Op{Hook: state.Hook{Kind: state.KindAction, Name: "backup", Action: 3, Relation: state.NoRelation}, Started: noon}, 0, false, nil, "action 3 (backup)", ""},
		{"a command", state.Op{Hook: state.Hook{Kind: state.KindCommand, Name: "juju-run", Action: 4, Relation: state.NoRelation}, Started: noon}, 0, false, nil, "command 4", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &input{Options: Options{Now: noon.Add(tc.after)}, ops: map[string]state.Op{"a/0": tc.op}, present: map[string]*state.Trouble{state.UnitAgent("a/0"): nil}}
			if tc.gone {
				w.present = nil
			}
			view := Unit{Info: tc.info}
			w.addRunning("a/0", &view)
			running, message := "", ""
			if view.Running != nil {
				running = view.Running.Name
			}
			if view.Info != nil {
				message = view.Info.Message
			}
			if running != tc.running || message != tc.message {
				t.Errorf("%s: runs %q, %q", tc.name, running, message)
			}
		})
	}
}
