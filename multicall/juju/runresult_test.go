package juju

import (
	"errors"
	"strings"
	"testing"

	"bijou/state/actions"
)

// TestFailedUnitBesideOneThatIsDown checks that a command that failed on a unit is reported, and is not hidden because
// its exit code could have become that of juju.
func TestFailedUnitBesideOneThatIsDown(t *testing.T) {
	code := 3
	failed := &awaitedAction{action: actions.Action{Unit: "web/0", Status: actions.Failed, Outcome: actions.Outcome{Code: &code, Message: "exit code 3"}}}
	r := runResult{actions: []*awaitedAction{failed}}
	if err := r.unitError(failed); err != nil {
		t.Errorf("the only unit: %v", err)
	}

	r.down = []error{errors.New(`unit "web/1" is down`)}
	if err := r.unitError(failed); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("beside a unit that is down: %v", err)
	}
}
