package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/statetest"
)

// TestConfinement checks machine 1, which uses a gateway, machine 2, which does not use one yet, and machine
// 3, which is not running.
func TestConfinement(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		want    map[string]string
	}{
		"confined":     {"true", map[string]string{"0": "", "1": "true", "2": "false", "3": ""}},
		"not confined": {"false", map[string]string{"0": "", "1": "", "2": "", "3": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := state.CreateIn(t.Context(), memstore.New(), state.Environment{
				Name: "a", UUID: "u", Provider: "nspawn", DefaultSeries: "noble", Config: map[string]string{"nspawn.confined": c.setting},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			session, err := st.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"1", "2", "3"} {
				statetest.Update(t, st, func(tx *state.Tx) error {
					_, err := tx.AddMachine(state.Machine{Series: "noble", Jobs: []string{state.JobUnits}})
					return err
				})
				if id == "3" {
					break
				}
				statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetMachineStatus(id, state.MachineRunning, "") })
				if err := state.Announce(t.Context(), session, st.Update, state.MachineAgent(id)); err != nil {
					t.Fatal(err)
				}
			}
			lease := store.Op{Key: keys.GatewayLease("machine-1", 7)}
			if _, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{lease}}); err != nil {
				t.Fatal(err)
			}

			s := statetest.Read(t, st, func(v *state.View) (Status, error) {
				s, err := Read(v, Options{Now: time.Now()})
				if err == nil {
					err = s.AddConfinement(v)
				}
				return s, err
			})
			got := map[string]string{}
			for id, m := range s.Machines {
				got[id] = ""
				if m.Confined != nil {
					got[id] = map[bool]string{true: "true", false: "false"}[*m.Confined]
				}
				if m.AwaitsConfinement() != (got[id] == "false") {
					t.Errorf("machine %s awaits its confinement: %t", id, m.AwaitsConfinement())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
