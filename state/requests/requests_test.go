package requests_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state"
	"bijou/state/requests"
	"bijou/testscripts/kit/statetest"
)

func run(ctx context.Context, st *state.State, update state.Updater) error {
	return requests.Run(ctx, st, update, slog.New(slog.DiscardHandler))
}

// fleet creates an environment in which agents have made every kind of request. wordpress/0 wants its
// subordinate. The units of mysql are dead, and their relation and their dying service end with them. The
// last member of another relation has left.
func fleet(t *testing.T, st *state.State) {
	t.Helper()
	statetest.AddService(t, st, statetest.WordPress(), 1)
	statetest.AddService(t, st, statetest.MySQL(), 3)
	statetest.AddService(t, st, statetest.Meta("logger", "subordinate: true\nrequires:\n  logging: {interface: juju-info, scope: container}\n"), 0)
	left := statetest.Relate(t, st, "wordpress", "mysql")
	wanted := statetest.Relate(t, st, "logger", "wordpress")

	statetest.Update(t, st, func(tx *state.Tx) error {
		for _, unit := range []string{"mysql/0", "mysql/1", "mysql/2", "wordpress/0"} {
			if err := tx.PutWorkflow(unit, state.Workflow{State: "started", Charm: "x"}); err != nil {
				return err
			}
			if err := tx.EnterRelation(left.ID, unit, nil); err != nil {
				return err
			}
			for n := range 60 {
				if err := tx.AddHookRun(unit, state.HookRun{Seq: int64(n)}); err != nil {
					return err
				}
			}
		}
		return tx.EnterRelation(wanted.ID, "wordpress/0", nil)
	})

	if err := st.DestroyService(t.Context(), "mysql"); err != nil {
		t.Fatal(err)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.DepartRelation(left.ID, "wordpress/0") })
	for n := range 3 {
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.DepartRelation(left.ID, fmt.Sprintf("mysql/%d", n)) })
		statetest.Update(t, st, func(tx *state.Tx) error {
			_, err := tx.RetireUnit(fmt.Sprintf("mysql/%d", n))
			return err
		})
	}
}

// outcome returns the remaining records of a fleet, and the waiting requests.
func outcome(v *state.View) (all []string, err error) {
	services, err := v.Services()
	if err != nil {
		return nil, err
	}
	units, err := v.Units("")
	if err != nil {
		return nil, err
	}
	relations, err := v.Relations()
	if err != nil {
		return nil, err
	}
	waiting, err := v.Requests()
	if err != nil {
		return nil, err
	}

	for _, s := range services {
		all = append(all, s.Name)
	}
	for _, u := range units {
		all = append(all, fmt.Sprintf("%s with %q", u.Name, u.Subordinates))
	}
	for _, r := range relations {
		all = append(all, r.String())
	}
	for _, r := range waiting {
		all = append(all, fmt.Sprintf("request %s of %s", r.Kind, r.Unit))
	}

	return all, nil
}

func wantOutcome() []string {
	return []string{"logger", "wordpress", `logger/0 with []`, `wordpress/0 with ["logger/0"]`, "relation-2"}
}

func isDone(v *state.View) (bool, error) {
	all, err := outcome(v)
	return slices.Equal(all, wantOutcome()), err
}

// TestLeadersInTurn kills the leader after each possible number of commits. The next leader must carry out
// all requests, and no write of the first leader may succeed after that.
func TestLeadersInTurn(t *testing.T) {
	for commits := 0; ; commits++ {
		st := statetest.New(t)
		fleet(t, st)
		first := leads(t, st)

		var made atomic.Int64
		err := run(t.Context(), st, func(ctx context.Context, f func(tx *state.Tx) error) error {
			if made.Add(1) > int64(commits) {
				return state.ErrSessionLost
			}
			if err := state.Under(first)(ctx, f); err != nil {
				return err
			}
			if done, err := state.Read(ctx, st, isDone); err != nil || done {
				return errors.Join(err, state.ErrClosed)
			}
			return nil
		})
		if errors.Is(err, state.ErrClosed) {
			if commits < 5 {
				t.Errorf("all was done with %d commits", commits)
			}
			return
		}
		if !errors.Is(err, state.ErrSessionLost) {
			t.Fatalf("after %d commits: %v", commits, err)
		}

		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := leads(t, st)
		if err := run(t.Context(), st, state.Under(first)); !errors.Is(err, state.ErrSessionLost) {
			t.Fatalf("a leader that was deposed after %d commits goes on: %v", commits, err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx, st, state.Under(second)) }()
		statetest.Eventually(t, st, isDone)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func leads(t *testing.T, st *state.State) *state.Leadership {
	t.Helper()
	l, err := state.CampaignToProvision(t.Context(), statetest.Session(t, st))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestWithoutRequests checks that a leader finds the work that a binary without requests has left undone.
func TestWithoutRequests(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		fleet(t, st)
		statetest.Update(t, st, func(tx *state.Tx) error {
			all, err := tx.Requests()
			for _, r := range all {
				if r.Kind != state.RequestSubordinate {
					tx.RemoveRequest(r)
				}
			}
			return err
		})

		statetest.Serve(t, st)
		statetest.Eventually(t, st, isDone)
	})
}

// TestOneRequestDoesNotHoldUpOthers checks that the leader carries out new requests while one request cannot
// be carried out.
func TestOneRequestDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := statetest.New(t)
		statetest.AddService(t, st, statetest.MySQL(), 2)
		retire := func(unit string) {
			statetest.Update(t, st, func(tx *state.Tx) error {
				if err := tx.PutWorkflow(unit, state.Workflow{State: "started", Charm: "x"}); err != nil {
					return err
				}
				return tx.DestroyUnit(unit)
			})
			statetest.Update(t, st, func(tx *state.Tx) error {
				_, err := tx.RetireUnit(unit)
				return err
			})
		}
		retire("mysql/0")

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx, st, contested(st, "mysql/0")) }()
		synctest.Wait()
		retire("mysql/1")
		time.Sleep(time.Minute)

		for unit, there := range map[string]bool{"mysql/0": true, "mysql/1": false} {
			_, err := state.Read(ctx, st, func(v *state.View) (state.Unit, error) { return v.Unit(unit) })
			if errors.Is(err, state.ErrNotFound) == there {
				t.Errorf("%s: %v", unit, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// contested returns the state's Update, with endless conflicts for transactions that remove the unit.
func contested(st *state.State, unit string) state.Updater {
	return func(ctx context.Context, f func(tx *state.Tx) error) error {
		touches := false
		err := st.Update(ctx, func(tx *state.Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			touches = slices.Contains(tx.Writes().ChangedKeys(), "units/"+unit)
			if touches {
				return context.Canceled
			}
			return nil
		})
		if touches {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	}
}
