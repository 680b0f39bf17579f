package uniter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestPartialReadLeavesTheCacheInvalid checks that the cache does not count as complete after a view that has
// failed halfway, since the view may be repeated.
func TestPartialReadLeavesTheCacheInvalid(t *testing.T) {
	st, _ := statetest.SQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	var s snapshotCache
	err := st.View(ctx, func(v *state.View) error {
		cancel()
		return s.refresh(v, "app/0")
	})
	if err == nil || s.valid {
		t.Errorf("known is %t after %v", s.valid, err)
	}
}

// TestCompared checks that members that join while the queue is closed arrive once it opens. This is also
// true for members that join at the same time, even if they are too many to be read one by one.
func TestCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, nil)
		defer l.u.watch.Close()
		defer l.u.output.Close()
		arrivals := func() int {
			e, _ := l.next(l.snapshot()).(decide.Enqueue)
			if len(e.Arrivals) > 0 {
				l.must(l.u.enqueue(t.Context(), e.Arrivals))
				l.next(l.snapshot())
			}
			return len(e.Arrivals)
		}
		write := func(f func(tx *state.Tx) error) {
			t.Helper()
			l.must(l.u.Update(t.Context(), f))
		}
		l.snapshot()
		write(func(tx *state.Tx) error {
			return tx.PutRelationState("app/0", 1, state.RelationState{State: state.RelationUp, Name: "db", RemoteService: "a"})
		})
		statetest.Enter(t, l.st, 1, "a/0", nil)
		if n := arrivals(); n != 0 {
			t.Errorf("before start: %d arrivals", n)
		}
		write(func(tx *state.Tx) error {
			return tx.PutWorkflow("app/0", state.Workflow{State: state.UnitStarted, NextPlace: 1})
		})
		if n := arrivals(); n != 1 {
			t.Errorf("after start: %d arrivals", n)
		}
		more, err := l.st.AddUnits(t.Context(), "a", maxSingleReads+1, state.Placement{})
		l.must(err)
		statetest.Update(t, l.st, func(tx *state.Tx) (err error) {
			for _, u := range more {
				err = errors.Join(err, tx.EnterRelation(1, u.Name, nil))
			}
			return err
		})
		if n := arrivals(); n != len(more) {
			t.Errorf("of %d at once: %d arrivals", len(more), n)
		}
		if n := arrivals(); n != 0 {
			t.Errorf("again: %d arrivals", n)
		}
	})
}
