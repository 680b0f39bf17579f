package uniter

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/unitdir"
	"bijou/testscripts/kit/statetest"
)

// TestCompareRestored compares directories with records that were restored from a backup. The records contain
// two hooks, the second of which ended last. Some cases add a later action or a running hook.
func TestCompareRestored(t *testing.T) {
	for _, test := range []struct {
		name    string
		note    string // the run that is recorded in the directory; empty means none
		charm   bool   // whether the directory has the charm
		action  bool   // whether an action was the last run to end
		flight  bool   // whether a hook is in flight
		differs string
	}{
		{"as the records say", "two", true, false, false, ""},
		{"the hook in flight was let go", "three", true, false, true, ""},
		{"the hook in flight was not", "two", true, false, true, ""},
		{"an action was the last", "act", true, true, false, ""},
		{"older", "one", true, false, false, "older than its records"},
		{"older than an action", "two", true, true, false, "older than its records"},
		{"further", "four", true, false, true, "that is not in its records"},
		{"nothing has run", "", true, false, false, "no record of any hook"},
		{"no charm", "two", false, false, false, "its directory does not contain its charm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := statetest.New(t)
			statetest.AddService(t, st, statetest.MySQL(), 1)
			at := time.Date(2014, 6, 1, 12, 0, 0, 0, time.UTC)
			statetest.Update(t, st, func(tx *state.Tx) error {
				err := errors.Join(
					tx.PutWorkflow("mysql/0", state.Workflow{State: "started", Charm: "local:noble/mysql-1"}),
					tx.AddHookRun("mysql/0", state.HookRun{ID: "one", Seq: 0, Ended: at}),
					tx.AddHookRun("mysql/0", state.HookRun{ID: "two", Seq: 1, Ended: at.Add(time.Second)}))
				if test.flight {
					err = errors.Join(err, tx.PutOp("mysql/0", state.Op{ID: "three"}))
				}
				return err
			})
			known := statetest.Read(t, st, func(v *state.View) (knownRuns, error) { return readKnownRuns(v, "mysql/0") })
			if test.action {
				known.last, known.ended["act"] = "act", true
			}
			folder := unitdir.Folder(t.TempDir())
			if test.charm {
				if err := os.Mkdir(folder.Charm(), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if test.note != "" {
				if err := os.WriteFile(folder.ProcessPath(), []byte(`{"id":"`+test.note+`","pid":1,"start":"1","boot":"b"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := known.compareFolder(folder)
			if err != nil || (got == "") != (test.differs == "") || !strings.Contains(got, test.differs) {
				t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.differs)
			}
		})
	}
}
