package actions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/keys"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

var noon = time.Date(2014, 6, 1, 12, 0, 0, 0, time.UTC)

func add(t *testing.T, st *state.State, spec actions.Action) (a actions.Action) {
	t.Helper()
	statetest.Update(t, st, func(tx *state.Tx) (err error) {
		a, err = actions.Add(tx, spec, noon)
		return err
	})
	return a
}

func action(t *testing.T, st *state.State, id int) actions.Action {
	t.Helper()
	return statetest.Read(t, st, func(v *state.View) (actions.Action, error) { return actions.Get(v, id) })
}

func TestActionsLife(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.Actor(), 1)
		a := add(t, st, actions.Action{Unit: "actor/0", Name: "backup"})
		add(t, st, actions.Action{Unit: "actor/0", Command: []string{"true"}})
		statetest.Update(t, st, func(tx *state.Tx) error { return actions.Start(tx, a.ID, "x", noon) })
		statetest.Update(t, st, func(tx *state.Tx) error {
			return actions.Log(tx, a.ID, actions.Line{Time: noon, Message: "half"})
		})
		code := 0
		big := strings.Repeat("x", 100_000)
		end := actions.Outcome{Code: &code, Results: map[string]any{"size": json.Number("12")},
			Output: actions.Output{Stdout: []byte(big), Stderr: []byte{0xff, 0}}}
		statetest.Update(t, st, func(tx *state.Tx) error { return actions.End(tx, a.ID, actions.Completed, end, noon) })

		got := action(t, st, a.ID)
		out := statetest.Read(t, st, func(v *state.View) (actions.Output, error) { return actions.ReadOutput(v, got) })
		if diff := cmp.Diff(end.Output, out); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		want := actions.Action{ID: 0, Unit: "actor/0", Name: "backup", Parameters: map[string]any{"level": json.Number("3")},
			Status: actions.Completed, Enqueued: noon, Started: noon, Run: "x", Completed: noon,
			Progress: []actions.Line{{Time: noon, Message: "half"}},
			Outcome:  actions.Outcome{Code: &code, Results: end.Results, Output: actions.Output{Blob: got.Output.Blob}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("action (-want +got):\n%s", diff)
		}
		next, ok, err := readNext(t, st)
		if err != nil || !ok || next.ID != 1 {
			t.Errorf("next: %+v, %v, %v", next, ok, err)
		}
	})
}

func readNext(t *testing.T, st *state.State) (a actions.Action, ok bool, err error) {
	err = st.View(t.Context(), func(v *state.View) (err error) {
		a, ok, err = actions.Next(v, "actor/0")
		return err
	})
	return a, ok, err
}

func TestActionIsCancelled(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	running := add(t, st, actions.Action{Unit: "actor/0", Name: "backup"})
	waiting := add(t, st, actions.Action{Unit: "actor/0", Name: "backup"})
	statetest.Update(t, st, func(tx *state.Tx) error { return actions.Start(tx, running.ID, "x", noon) })
	for _, id := range []int{running.ID, waiting.ID} {
		statetest.Update(t, st, func(tx *state.Tx) error { return actions.Cancel(tx, id, noon) })
	}
	if got := action(t, st, waiting.ID); got.Status != actions.Cancelled {
		t.Errorf("the waiting one is %s", got.Status)
	}
	next, _, err := readNext(t, st)
	if err != nil || next.ID != running.ID || !next.Cancel || next.Status != actions.Running {
		t.Errorf("the running one: %+v, %v", next, err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { return actions.Cancel(tx, waiting.ID, noon) })
	if !errors.Is(err, state.ErrInUse) {
		t.Errorf("cancelled twice: %v", err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { return actions.Start(tx, waiting.ID, "x", noon) })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("started after it was cancelled: %v", err)
	}
}

func TestActionsRefused(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	for _, tc := range []struct {
		spec actions.Action
		want string
	}{
		{actions.Action{Unit: "actor/7", Name: "backup"}, `unit "actor/7" not found`},
		{actions.Action{Unit: "actor/0", Name: "restore"}, `no action "restore"`},
		{actions.Action{Unit: "actor/0", Name: "backup", Parameters: map[string]any{"x": 1}}, `unknown parameter "x"`},
		{actions.Action{Unit: "actor/0", Command: []string{strings.Repeat("x", actions.MaxText)}}, "the limit is 65536"},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := actions.Add(tx, tc.spec, noon)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
	for range actions.MaxWaiting {
		add(t, st, actions.Action{Unit: "actor/0", Command: []string{"true"}})
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error {
		_, err := actions.Add(tx, actions.Action{Unit: "actor/0", Command: []string{"true"}}, noon)
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
		a := add(t, st, actions.Action{Unit: "actor/0", Command: []string{fmt.Sprint(i)}})
		statetest.Update(t, st, func(tx *state.Tx) error {
			return actions.End(tx, a.ID, actions.Completed, actions.Outcome{}, noon)
		})
	}
	all := statetest.Read(t, st, func(v *state.View) ([]actions.Action, error) { return actions.List(v, "") })
	own := statetest.Read(t, st, func(v *state.View) ([]actions.Action, error) { return actions.List(v, "actor/0") })
	if len(all) != 50 || len(own) != 50 || own[0].ID != 10 || own[49].ID != 59 {
		t.Errorf("%d in all, %d of the unit", len(all), len(own))
	}
}

func TestActionsOfAUnitThatIsGone(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	a := add(t, st, actions.Action{Unit: "actor/0", Name: "backup"})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DestroyUnit("actor/0") })
	if err := state.RemoveUnit(t.Context(), st.Update, "actor/0"); err != nil {
		t.Fatal(err)
	}
	if got := action(t, st, a.ID); got.Status != actions.Cancelled || got.Message != "its unit has been removed" {
		t.Errorf("it is %s: %s", got.Status, got.Message)
	}
	if err := sweep.Run(t.Context(), st, noon.Add(sweep.LogGrace+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all := statetest.Read(t, st, func(v *state.View) ([]actions.Action, error) { return actions.List(v, "") }); len(all) != 0 {
		t.Errorf("%d are left after the sweep", len(all))
	}
}

// TestQueuesOfAgents checks a queue that lists actions of other agents or missing actions. It must not change
// the other agents' actions, and must not delay the agent's own.
func TestQueuesOfAgents(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.Actor(), 2)
		others := []actions.Action{add(t, st, actions.Action{Unit: "actor/1", Name: "backup"}), add(t, st, actions.Action{Unit: "actor/1", Name: "backup"})}
		statetest.Update(t, st, func(tx *state.Tx) error {
			return actions.End(tx, others[0].ID, actions.Completed, actions.Outcome{}, noon)
		})
		first, second := add(t, st, actions.Action{Unit: "actor/0", Name: "backup"}), add(t, st, actions.Action{Unit: "actor/0", Name: "backup"})

		ended := []int{others[0].ID, others[1].ID, second.ID}
		for n := range 700 {
			ended = append(ended, 1000+n)
		}
		queue := struct {
			Waiting []int `json:"waiting"`
			Ended   []int `json:"ended"`
		}{[]int{500, others[1].ID, first.ID, second.ID}, ended}
		statetest.Update(t, st, func(tx *state.Tx) error {
			key := keys.ActionQueue("actor/0")
			_, _, err := tx.Keys().Get(key)
			return errors.Join(err, tx.Keys().Put(key, queue))
		})

		next := func(unit string) int {
			a := statetest.Read(t, st, func(v *state.View) (actions.Action, error) {
				a, ok, err := actions.Next(v, unit)
				if err == nil && !ok {
					a.ID = -1
				}
				return a, err
			})
			return a.ID
		}
		if id := next("actor/0"); id != first.ID {
			t.Errorf("next is action %d, want %d", id, first.ID)
		}
		statetest.Update(t, st, func(tx *state.Tx) error { return actions.Cancel(tx, first.ID, noon) })
		if a := action(t, st, second.ID); a.Status != actions.Pending {
			t.Errorf("an action that waits is %s", a.Status)
		}
		for _, a := range others {
			action(t, st, a.ID) // the action must exist
		}
		if id := next("actor/1"); id != others[1].ID {
			t.Errorf("next of the other unit is action %d, want %d", id, others[1].ID)
		}

		own := statetest.Read(t, st, func(v *state.View) ([]actions.Action, error) { return actions.List(v, "actor/0") })
		for _, a := range own {
			if a.Unit != "actor/0" {
				t.Errorf("action %d of %s is listed", a.ID, a.Unit)
			}
		}
	})
}

// TestProgressIsBoundedAsStored checks that an action's progress leaves room in the record, which a gateway
// accepts up to 512 KiB, no matter how the store encodes the lines.
func TestProgressIsBoundedAsStored(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	id := add(t, st, actions.Action{Unit: "mysql/0", Command: []string{"true"}}).ID
	statetest.Update(t, st, func(tx *state.Tx) error { return actions.Start(tx, id, "x", noon) })
	for range 101 {
		statetest.Update(t, st, func(tx *state.Tx) error {
			return actions.Log(tx, id, actions.Line{Time: noon, Message: strings.Repeat("\x1b", 4<<10)})
		})
	}

	statetest.View(t, st, func(v *state.View) error {
		kv, err := v.Keys().GetKV(keys.Action(id))
		if n := len(kv.Value); n > 300<<10 || n < 200<<10 {
			t.Errorf("the record has %d bytes", n)
		}
		return err
	})
}
