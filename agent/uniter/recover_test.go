package uniter

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bijou/agent/hook"
	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/statetest"
)

// TestFailCrashedIsListed checks that the unit's history lists both of two hooks that failed with an
// unknown exit status.
func TestFailCrashedIsListed(t *testing.T) {
	l := newLife(t, nil)
	for _, id := range []string{"one", "two"} {
		op := state.Op{ID: id, Hook: hook.ForUnit(hook.Install)}
		statetest.Update(t, l.st, func(tx *state.Tx) error { return tx.PutOp("app/0", op) })
		if err := l.u.failCrashed(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	runs := statetest.Read(t, l.st, func(v *state.View) ([]state.HookRun, error) { return v.HookRuns("app/0") })
	if len(runs) != 2 {
		t.Errorf("the history has %+v", runs)
	}
}

// TestFailCrashedLogsOnce checks that a failure is logged once even if its commit is retried.
func TestFailCrashedLogsOnce(t *testing.T) {
	l := newLife(t, nil)
	path := l.logToFile()
	op := state.Op{ID: "one", Hook: hook.ForUnit(hook.Install)}
	l.update(func(tx *state.Tx) error { return tx.PutOp("app/0", op) })
	l.failNextUpdate(state.ErrAway)

	if err := l.u.failCrashed(t.Context(), op); !errors.Is(err, state.ErrAway) {
		t.Fatalf("error %v, want %v", err, state.ErrAway)
	}
	l.must(l.u.failCrashed(t.Context(), op))

	log := readFile(t, path)
	if n := strings.Count(log, `"install" failed`); n != 1 {
		t.Errorf("the failure is logged %d times:\n%s", n, log)
	}
}

// TestBackoffAfterAnAnswer checks the backoff of failed hooks of the unit and of a relation. An operator's
// retry restarts the backoff, and an operator's answer that comes too late is not lost.
func TestBackoffAfterAnAnswer(t *testing.T) {
	for _, h := range []state.Hook{hook.ForUnit(hook.Start), hook.ForRelation(hook.Changed, relationsOfPlay()[1], "a/0")} {
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, nil)
			defer l.u.output.Close()
			relation, runs := "", 0
			if h.Relation != state.NoRelation {
				relation = "db:1"
			}
			fail := func(wantWait time.Duration, wantAttempts int) {
				t.Helper()
				runs++
				r := &runningHook{op: state.Op{ID: fmt.Sprint(runs), Hook: h}, from: decide.FromFailure}
				l.update(func(tx *state.Tx) error { return r.recordBegin(tx, "app/0") })
				failed := newRunRecord(r.op, "exit code 1")
				failed.orphaned = false
				l.must(l.u.commitFailure(t.Context(), r.op, failed))
				l.update(func(tx *state.Tx) error {
					f, err := readFailure(tx, "app/0", h.Relation)
					if wait := f.RetryAt.Sub(now()); wait != wantWait || f.Attempts != wantAttempts {
						t.Errorf("%s: retried in %s after attempt %d, want in %s after %d", h.Name, wait, f.Attempts, wantWait, wantAttempts)
					}
					return err
				})
			}
			answer := func(retry bool) {
				l.update(func(tx *state.Tx) error { _, err := actions.SetResolved(tx, "app/0", relation, retry); return err })
			}
			fail(5*time.Second, 1)
			fail(10*time.Second, 2)
			answer(true)
			fail(5*time.Second, 3)
			answer(false)
			fail(10*time.Second, 4)
			l.update(func(tx *state.Tx) error {
				u, err := tx.Unit("app/0")
				if u.Resolved != state.ResolvedDone && u.ResolvedRelations[h.Relation] != state.ResolvedDone {
					t.Errorf("%s: the answer that it counts as done is lost", h.Name)
				}
				return err
			})
		})
	}
}

func TestFailuresInARow(t *testing.T) {
	h := hook.ForUnit(hook.Start)
	at := time.Date(2012, 10, 1, 12, 0, 0, 0, time.UTC)
	var f *state.Failure
	for i, want := range []time.Duration{5, 5, 10, 20, 20, 40, 80, 160, 300, 300} {
		r := newRunRecord(state.Op{}, "exit code 1")
		r.orphaned = i == 0 || i == 4 // this does not extend the backoff
		f = newFailure(f, h, r, true, at)
		if got := f.RetryAt.Sub(at); got != want*time.Second {
			t.Errorf("attempt %d: the next is due in %s, want %s", f.Attempts, got, want*time.Second)
		}
	}
	if g := newFailure(f, hook.ForUnit(hook.Stop), newRunRecord(state.Op{}, "exit code 1"), false, at); g.Attempts != 1 || g.Backoff != 0 || !g.RetryAt.IsZero() {
		t.Errorf("another hook's failure: %+v", g)
	}
}
