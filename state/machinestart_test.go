package state_test

import (
	"strings"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestSetStarted checks the start of a machine that had failed to start. The machine counts as running if its
// agent is present, and otherwise as pending. It no longer has the message of the failure.
func TestSetStarted(t *testing.T) {
	for name, c := range map[string]struct {
		present bool
		want    state.MachineStatus
	}{
		"its agent is there": {true, state.MachineRunning},
		"it has none yet":    {false, state.MachinePending},
	} {
		t.Run(name, func(t *testing.T) {
			env := statetest.Environment()
			env.Provider = "nspawn"
			st := statetest.NewOf(t, env)
			statetest.Update(t, st, func(tx *state.Tx) error {
				_, err := tx.AddMachine(state.Machine{})
				return err
			})
			if c.present {
				session, err := st.NewSession(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close(t.Context())
				if err := state.Announce(t.Context(), session, st.Update, state.MachineAgent("1")); err != nil {
					t.Fatal(err)
				}
			}
			statetest.Update(t, st, func(tx *state.Tx) error {
				return tx.SetStartFailure("1", state.StartFailure{Message: "it took too long"})
			})
			statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetStarted("1", "i-1", state.Addresses{}) })
			if m := machine(t, st, "1"); m.Status != c.want || m.Message != "" {
				t.Errorf("machine %+v, want it %s", m, c.want)
			}
		})
	}
}

// TestStartFailuresAreCut checks that long messages of providers are cut, so that many of them fit into one
// transaction.
func TestStartFailuresAreCut(t *testing.T) {
	st := statetest.New(t)
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetStartFailure("0", state.StartFailure{Message: strings.Repeat("no ", 1<<20)})
	})
	if m := machine(t, st, "0"); len(m.Message) > 4<<10 || len(m.Message) < 4<<10-10 || !strings.HasSuffix(m.Message, " bytes cut off)") {
		t.Errorf("%d bytes are kept, with the end %q", len(m.Message), m.Message[len(m.Message)-30:])
	}
}

// machine reads a machine.
func machine(t *testing.T, st *state.State, id string) (m state.Machine) {
	t.Helper()
	statetest.View(t, st, func(v *state.View) (err error) {
		m, err = v.Machine(id)
		return err
	})
	return m
}
