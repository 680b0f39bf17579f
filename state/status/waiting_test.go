package status_test

import (
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/status"
	"bijou/testscripts/kit/statetest"
)

// TestWaitsForProvisioner checks that after half a minute the status reports that two dead units wait for
// their removal, unless there is a leader that will remove them.
func TestWaitsForProvisioner(t *testing.T) {
	const removals = "2 requests wait for a provisioner (removal of mysql/0, removal of mysql/1): "

	for _, test := range []struct {
		name  string
		lead  func(t *testing.T, st *state.State)
		after time.Duration
		want  string // the expected message of the provisioner
	}{
		{"at once", nil, time.Second, ""},
		{"nobody leads", nil, time.Minute, removals + "juju start on the host of machine 0 starts one"},
		{"one that serves leads", func(t *testing.T, st *state.State) {
			_, err := state.CampaignToProvision(t.Context(), statetest.Session(t, st))
			if err != nil {
				t.Fatal(err)
			}
		}, time.Minute, ""},
		{"one of an older version leads", func(t *testing.T, st *state.State) {
			_, err := state.Campaign(t.Context(), statetest.Session(t, st), "provisioner")
			if err != nil {
				t.Fatal(err)
			}
		}, time.Minute, removals + "the running provisioner has an older version; to upgrade it: juju upgrade-model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := statetest.New(t)
			statetest.AddService(t, st, statetest.MySQL(), 2)
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.SetMachineStatus("0", state.MachineRunning, "")
			})
			for _, unit := range []string{"mysql/0", "mysql/1"} {
				statetest.Update(t, st, func(tx *state.Tx) error {
					if err := tx.PutWorkflow(unit, state.Workflow{State: "stopped"}); err != nil {
						return err
					}
					if err := tx.DestroyUnit(unit); err != nil {
						return err
					}
					_, err := tx.RetireUnit(unit)
					return err
				})
			}
			session := statetest.Session(t, st, "machine-0", "unit-mysql-0", "unit-mysql-1")
			defer session.Close(t.Context())
			if test.lead != nil {
				test.lead(t, st)
			}

			o := status.Options{Now: time.Now().Add(test.after)}
			s := statetest.Read(t, st, func(v *state.View) (status.Status, error) { return status.Read(v, o) })
			got := ""
			if s.Provisioner != nil {
				got = strings.Join(s.Provisioner.Messages, "\n")
			}
			if got != test.want {
				t.Errorf("the provisioner: %q\nwant %q", got, test.want)
			}

			u := s.Services["mysql"].Units["mysql/1"]
			waitsFor, toDo := status.Explain("mysql/1", u, s.Machines["0"])
			if waits := waitsFor == "a provisioner" && len(toDo) == 1; waits != (test.want != "") {
				t.Errorf("the unit waits for %q; %q", waitsFor, toDo)
			}
		})
	}
}
