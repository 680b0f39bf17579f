package juju

import (
	"bytes"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/statetest"
)

// TestActionsBar checks that a wait for several actions shows the number of ended actions, and that a wait
// for one action shows nothing.
func TestActionsBar(t *testing.T) {
	for what, tt := range map[string]struct {
		ended []bool
		want  string
	}{
		"one of three": {[]bool{true, false, false}, "actions ended: 1 of 3\n"},
		"none of two":  {[]bool{false, false}, "actions ended: 0 of 2\n"},
		"all":          {[]bool{true, true}, ""},
		"a single one": {[]bool{false}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			var out bytes.Buffer
			clock := time.Unix(0, 0)
			o := &operator{bar: console.NewProgress(&out, func() time.Time {
				clock = clock.Add(time.Hour)
				return clock
			})}

			w := &actionWaiter{o: o}
			for _, ended := range tt.ended {
				a := &awaitedAction{action: actions.Action{Status: actions.Running}}
				if ended {
					a.action.Status = actions.Completed
				}
				w.actions = append(w.actions, a)
			}

			w.showBar()
			w.showBar()
			if got := out.String(); got != tt.want {
				t.Errorf("it shows %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStuckReason checks that an action is no longer stuck once its agent is back or out of trouble, unless the
// command already cancels the action for that reason.
func TestStuckReason(t *testing.T) {
	const unit = "mysql/0"
	agent := state.UnitAgent(unit)
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.SetUnitCharm(unit, "local:jammy/mysql-3") })
	var a awaitedAction
	statetest.Update(t, st, func(tx *state.Tx) (err error) {
		a.action, err = actions.Add(tx, actions.Action{Unit: unit, Command: []string{"true"}}, time.Now())
		return err
	})

	now := time.Now()
	check := func(what, want string) {
		t.Helper()
		a = statetest.Read(t, st, func(v *state.View) (awaitedAction, error) { return a.refresh(v, now) })
		if a.stuckReason != want {
			t.Errorf("%s: the reason is %q, want %q", what, a.stuckReason, want)
		}
		now = now.Add(agentDownTimeout)
	}

	const down = "the agent of its unit went down"
	check("absent", "")
	check("absent for long", down)
	session := statetest.Session(t, st, agent)
	check("back", "")

	report := func(trouble *state.Trouble) {
		t.Helper()
		if err := state.Report(t.Context(), session, st.Update, agent, trouble); err != nil {
			t.Fatal(err)
		}
	}
	report(&state.Trouble{Message: "no space left", Since: now.Add(-agentDownTimeout)})
	check("in trouble", "the agent of its unit cannot continue: no space left")
	report(nil)
	check("out of trouble", "")

	a.stuckReason = down
	a.isCancelled = true
	check("back after the cancellation", down)
}
