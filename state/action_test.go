package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

var noon = time.Date(2014, 6, 1, 12, 0, 0, 0, time.UTC)

func add(t *testing.T, st *state.State, spec state.Action) (a state.Action) {
	t.Helper()
	statetest.Update(t, st, func(tx *state.Tx) (err error) {
		a, err = tx.AddAction(spec, noon)
		return err
	})
	return a
}

func action(t *testing.T, st *state.State, id int) state.Action {
	t.Helper()
	return statetest.Read(t, st, func(v *state.View) (state.Action, error) { return v.Action(id) })
}

func TestActionsLife(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.Actor(), 1)
		a := add(t, st, state.Action{Unit: "actor/0", Name: "backup"})
		add(t, st, state.Action{Unit: "actor/0", Command: []string{"true"}})
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.StartAction(a.ID, "x", noon) })
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.LogAction(a.ID, state.ActionLine{Time: noon, Message: "half"})
		})
		code := 0
		big := strings.Repeat("x", 100_000)
		end := state.ActionEnd{Code: &code, Results: map[string]any{"size": json.Number("12")},
			Output: state.Output{Stdout: []byte(big), Stderr: []byte{0xff, 0}}}
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.EndAction(a.ID, state.ActionCompleted, end, noon) })

		got := action(t, st, a.ID)
		out := statetest.Read(t, st, func(v *state.View) (state.Output, error) { return v.Output(got) })
		if diff := cmp.Diff(end.Output, out); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		want := state.Action{ID: 0, Unit: "actor/0", Name: "backup", Parameters: map[string]any{"level": json.Number("3")},
			Status: state.ActionCompleted, Enqueued: noon, Started: noon, Run: "x", Completed: noon,
			Progress:  []state.ActionLine{{Time: noon, Message: "half"}},
			ActionEnd: state.ActionEnd{Code: &code, Results: end.Results, Output: state.Output{Blob: got.Output.Blob}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("action (-want +got):\n%s", diff)
		}
		next, ok, err := readNext(t, st)
		if err != nil || !ok || next.ID != 1 {
			t.Errorf("next: %+v, %v, %v", next, ok, err)
		}
	})
}

func readNext(t *testing.T, st *state.State) (a state.Action, ok bool, err error) {
	err = st.View(t.Context(), func(v *state.View) (err error) {
		a, ok, err = v.NextAction("actor/0")
		return err
	})
	return a, ok, err
}

func TestActionIsCancelled(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	running := add(t, st, state.Action{Unit: "actor/0", Name: "backup"})
	waiting := add(t, st, state.Action{Unit: "actor/0", Name: "backup"})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.StartAction(running.ID, "x", noon) })
	for _, id := range []int{running.ID, waiting.ID} {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.CancelAction(id, noon) })
	}
	if got := action(t, st, waiting.ID); got.Status != state.ActionCancelled {
		t.Errorf("the waiting one is %s", got.Status)
	}
	next, _, err := readNext(t, st)
	if err != nil || next.ID != running.ID || !next.Cancel || next.Status != state.ActionRunning {
		t.Errorf("the running one: %+v, %v", next, err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { return tx.CancelAction(waiting.ID, noon) })
	if !errors.Is(err, state.ErrInUse) {
		t.Errorf("cancelled twice: %v", err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { return tx.StartAction(waiting.ID, "x", noon) })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("started after it was cancelled: %v", err)
	}
}

func TestActionsRefused(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	for _, tc := range []struct {
		spec state.Action
		want string
	}{
		{state.Action{Unit: "actor/7", Name: "backup"}, `unit "actor/7" not found`},
		{state.Action{Unit: "actor/0", Name: "restore"}, `no action "restore"`},
		{state.Action{Unit: "actor/0", Name: "backup", Parameters: map[string]any{"x": 1}}, `unknown parameter "x"`},
		{state.Action{Unit: "actor/0", Command: []string{strings.Repeat("x", state.MaxActionText)}}, "at most 65536"},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := tx.AddAction(tc.spec, noon)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
	for range state.MaxWaitingActions {
		add(t, st, state.Action{Unit: "actor/0", Command: []string{"true"}})
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error {
		_, err := tx.AddAction(state.Action{Unit: "actor/0", Command: []string{"true"}}, noon)
		return err
	})
	if !errors.Is(err, state.ErrInUse) {
		t.Errorf("one too many: %v", err)
	}
}

func TestOldActionsAreForgotten(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	for i := range 60 {
		a := add(t, st, state.Action{Unit: "actor/0", Command: []string{fmt.Sprint(i)}})
		statetest.Update(t, st, func(tx *state.Tx) error {
			return tx.EndAction(a.ID, state.ActionCompleted, state.ActionEnd{}, noon)
		})
	}
	all := statetest.Read(t, st, func(v *state.View) ([]state.Action, error) { return v.Actions("") })
	own := statetest.Read(t, st, func(v *state.View) ([]state.Action, error) { return v.Actions("actor/0") })
	if len(all) != 50 || len(own) != 50 || own[0].ID != 10 || own[49].ID != 59 {
		t.Errorf("%d in all, %d of the unit", len(all), len(own))
	}
}

func TestActionsOfAUnitThatIsGone(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	a := add(t, st, state.Action{Unit: "actor/0", Name: "backup"})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("actor/0") })
	if err := state.RemoveUnit(t.Context(), st.Update, "actor/0"); err != nil {
		t.Fatal(err)
	}
	if got := action(t, st, a.ID); got.Status != state.ActionCancelled || got.Message != "its unit is gone" {
		t.Errorf("it is %s: %s", got.Status, got.Message)
	}
	if err := sweep.Run(t.Context(), st, noon.Add(sweep.LogGrace+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all := statetest.Read(t, st, func(v *state.View) ([]state.Action, error) { return v.Actions("") }); len(all) != 0 {
		t.Errorf("%d are left after the sweep", len(all))
	}
}
