package actions_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/statetest"
)

func charms() map[string]statetest.Files {
	return map[string]statetest.Files{
		"mysql":     statetest.MySQL(),
		"wordpress": statetest.WordPress(),
		"twice":     statetest.Meta("twice", "requires:\n  db: mysql\n  backup: mysql\n"),
	}
}

func TestSetResolved(t *testing.T) {
	st := statetest.New(t)
	for _, name := range []string{"mysql", "wordpress", "twice"} {
		statetest.AddService(t, st, charms()[name], 1)
	}
	statetest.Relate(t, st, "wordpress", "mysql") // relation-1
	statetest.Relate(t, st, "twice:db", "mysql")  // relation-2
	failure := &state.Failure{Hook: state.Hook{Name: "x"}, Attempts: 1}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(
			tx.PutWorkflow("mysql/0", state.Workflow{State: "start-error", Failure: failure}),
			tx.PutWorkflow("wordpress/0", state.Workflow{State: "started"}),
			tx.PutRelationState("mysql/0", 2, state.RelationState{State: state.RelationError, Failure: failure}),
			tx.PutRelationState("mysql/0", 1, state.RelationState{State: state.RelationUp}),
		)
	})
	for _, test := range []struct {
		unit, relation string
		retry          bool
		kind           error
		message        string
	}{
		{"wordpress/0", "", false, state.ErrNotInError, `unit "wordpress/0" is already running`},
		{"mysql/0", "", true, nil, ""},
		{"mysql/0", "", false, nil, ""},
		{"mysql/0", "", true, nil, ""},
		{"mysql/0", "", true, state.ErrAlreadyResolved, `unit "mysql/0" is already marked as resolved`},
		{"mysql/0", "relation-2", false, nil, ""},
		{"mysql/0", "2", false, state.ErrAlreadyResolved, `relation-2 of unit "mysql/0" is already marked as resolved`},
		{"mysql/0", "server:2", false, state.ErrAlreadyResolved, `relation-2 of unit "mysql/0" is already marked as resolved`},
		{"mysql/0", "1", true, state.ErrNotInError, `relation-1 of unit "mysql/0" is already running`},
		{"wordpress/0", "db", true, state.ErrNotInError, `relation-1 of unit "wordpress/0" is already running`},
		{"wordpress/0", "2", true, state.ErrNotFound, "Relation not found"},
		{"wordpress/0", "nope", true, state.ErrNotFound, "Relation not found"},
		{"mysql/7", "", true, state.ErrNotFound, `unit "mysql/7" not found`},
		{"mysql/0", "server", true, nil, `relation "server" of unit "mysql/0" is ambiguous: want one of relation-1 (mysql:server wordpress:db), relation-2 (mysql:server twice:db)`},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := actions.SetResolved(tx, test.unit, test.relation, test.retry)
			return err
		})
		message := ""
		if err != nil {
			message = err.Error()
		}
		if test.kind != nil && !errors.Is(err, test.kind) || message != test.message {
			t.Errorf("%s %q: %v", test.unit, test.relation, err)
		}
	}
	resolved := func() state.Unit {
		u := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("mysql/0") })
		return state.Unit{Resolved: u.Resolved, ResolvedRelations: u.ResolvedRelations}
	}
	want := state.Unit{Resolved: state.ResolvedRetry, ResolvedRelations: map[int]state.Resolved{2: state.ResolvedDone}}
	if d := cmp.Diff(want, resolved()); d != "" {
		t.Error(d)
	}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(tx.ClearResolved("mysql/0", state.NoRelation), tx.RemoveRelationState("mysql/0", 2))
	})
	if d := cmp.Diff(state.Unit{}, resolved()); d != "" {
		t.Error(d)
	}
}

// TestResolvedBeforeTheAgentHasLooked checks a restored unit with storage whose error the operator resolves
// in advance. When its agent reports the missing storage later, the unit continues immediately.
func TestResolvedBeforeTheAgentHasLooked(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Meta("keeper", "storage: {data: {type: filesystem}, more: {type: filesystem}}"), 1)
	statetest.Update(t, st, func(tx *state.Tx) error {
		for _, id := range []string{"data/0", "more/1"} {
			if err := tx.MarkStorageMade(id); err != nil {
				return err
			}
			if err := tx.SetStorageBound(id, "/old/"+id); err != nil {
				return err
			}
			if err := tx.EndStorageHook(id, true); err != nil {
				return err
			}
		}
		return tx.Keys().Put("units/keeper/0/restored", state.Restored{})
	})

	statetest.Update(t, st, func(tx *state.Tx) error { _, err := actions.SetResolved(tx, "keeper/0", "", false); return err })
	mark, marked, err := readMark(t, st)
	if err != nil || !marked || !mark.Accepted {
		t.Fatalf("%+v, %v, %v", mark, marked, err)
	}

	// The same answer has no effect, but the answer to a hook that has failed can still change.
	resolve := func(retry bool) error {
		return st.Update(t.Context(), func(tx *state.Tx) error {
			_, err := actions.SetResolved(tx, "keeper/0", "", retry)
			return err
		})
	}
	if err := resolve(false); !errors.Is(err, state.ErrAlreadyResolved) {
		t.Errorf("the second answer: %v", err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error {
		failure := &state.Failure{Hook: state.Hook{Name: "x"}, Attempts: 1}
		return tx.PutWorkflow("keeper/0", state.Workflow{State: "start-error", Failure: failure})
	})
	for _, retry := range []bool{false, true} {
		if err := resolve(retry); err != nil {
			t.Errorf("retry %t: %v", retry, err)
		}
	}

	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetRestoredDiffers("keeper/0", "it is not there", []string{"data/0"})
	})
	if mark, marked, err := readMark(t, st); err != nil || marked {
		t.Errorf("%+v, %v", mark, err)
	}
	got := map[string]state.StorageState{}
	for _, s := range statetest.Read(t, st, (*state.View).Storages) {
		got[s.ID+" "+s.Location] = s.State
	}
	want := map[string]state.StorageState{"data/0 ": state.StoragePending, "more/1 /old/more/1": state.StorageAttached}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestResolvedKeepsADetachment checks a restored unit whose storage is missing and was detached in the meantime. The
// answer must not attach the storage again.
func TestResolvedKeepsADetachment(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Meta("keeper", "storage: {data: {type: filesystem}, more: {type: filesystem}}"), 1)
	statetest.Update(t, st, func(tx *state.Tx) error {
		for _, id := range []string{"data/0", "more/1"} {
			if err := errors.Join(tx.MarkStorageMade(id), tx.SetStorageBound(id, "/old/"+id), tx.EndStorageHook(id, true)); err != nil {
				return err
			}
		}
		return tx.Keys().Put("units/keeper/0/restored", state.Restored{})
	})
	statetest.Update(t, st, func(tx *state.Tx) error {
		return tx.SetRestoredDiffers("keeper/0", "they are not there", []string{"data/0", "more/1"})
	})
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DetachStorage("data/0") })
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.RemoveStorage("more/1", true) })

	statetest.Update(t, st, func(tx *state.Tx) error { _, err := actions.SetResolved(tx, "keeper/0", "", false); return err })
	for _, s := range statetest.Read(t, st, (*state.View).Storages) {
		if s.Unit != "" || s.State != state.StorageDetached {
			t.Errorf("%s is %s at %q", s.ID, s.State, s.Unit)
		}
	}
}

func readMark(t *testing.T, st *state.State) (mark state.Restored, marked bool, err error) {
	t.Helper()
	err = st.View(t.Context(), func(v *state.View) error {
		mark, marked, err = v.Restored("keeper/0")
		return err
	})
	return mark, marked, err
}

func TestSkippedHook(t *testing.T) {
	run := func(seq int64, hook, relation, failure string) state.HookRun {
		return state.HookRun{Seq: seq, Hook: hook, Relation: relation, Failure: failure}
	}
	for _, c := range []struct {
		name, relation string
		runs           []state.HookRun
		want           string
	}{
		{"none has failed", "", []state.HookRun{run(0, "install", "", "")}, ""},
		{"the last has failed", "", []state.HookRun{run(0, "install", "", ""), run(1, "start", "", "x")}, "start"},
		{"others have run since", "", []state.HookRun{run(0, "start", "", "x"), run(1, "config-changed", "", "")}, "start"},
		{"it has succeeded since", "", []state.HookRun{run(0, "start", "", "x"), run(1, "start", "", "")}, ""},
		{"update-status is never in error", "", []state.HookRun{run(0, "update-status", "", "x")}, ""},
		{"a relation's is not the unit's", "", []state.HookRun{run(0, "db-relation-joined", "relation-1", "x")}, ""},
		{"a relation's", "db", []state.HookRun{run(0, "db-relation-joined", "relation-1", "x")}, "db-relation-joined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := statetest.New(t)
			for _, name := range []string{"mysql", "wordpress"} {
				statetest.AddService(t, st, charms()[name], 1)
			}
			statetest.Relate(t, st, "wordpress", "mysql") // relation-1
			statetest.Update(t, st, func(tx *state.Tx) error {
				for _, r := range c.runs {
					if err := tx.AddHookRun("wordpress/0", r); err != nil {
						return err
					}
				}
				return nil
			})

			err := st.View(t.Context(), func(v *state.View) error {
				found, ok, err := actions.SkippedHook(v, "wordpress/0", c.relation)
				if found.Hook != c.want || ok != (c.want != "") {
					t.Errorf("found %q, %v; want %q", found.Hook, ok, c.want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
