package agent

import (
	"errors"
	"slices"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestClaimLostInMidHook moves a machine to another host while a hook runs. The agent must end the hook
// without a commit, and return the reason.
func TestClaimLostInMidHook(t *testing.T) {
	once(t, func(r *rig) {
		r.lonely(map[string]string{"install": `trap 'echo "$JUJU_UNIT_NAME told to end" >> ` + r.notes + `; exit 0' TERM; open-port 80; echo "$JUJU_UNIT_NAME ready" >> ` + r.notes + `; while :; do sleep 0.05; done`})
		r.start()
		r.awaitNote("app/0", "ready")
		statetest.Update(t, r.st, func(tx *state.Tx) error {
			return tx.ReassignClaim("0", &state.Holder{Host: "another", Folder: "/m", Name: "two"})
		})
		err := receive(t, "the agent ends", r.done)
		r.stop = nil
		if !errors.Is(err, state.ErrClaimLost) {
			t.Errorf("it ended with %v", err)
		}
		if got := r.noted("app/0"); !slices.Equal(got, []string{"install", "ready", "told to end"}) {
			t.Errorf("noted: %q", got)
		}
		if u := r.uniter("app/0"); u.Op == nil || u.Workflow.State != "" {
			t.Errorf("after its end: %+v", u)
		}
		if err := RunMachine(t.Context(), MachineOptions{Machine: "0", Options: Options{State: r.st, Dir: r.dir, Tools: r.tools, Log: r.log()}}); !errors.Is(err, state.ErrClaimed) {
			t.Errorf("it began again with %v", err)
		}
	})
}
