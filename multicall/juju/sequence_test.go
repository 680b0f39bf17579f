package juju

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// TestServiceStaysWithItsStorage destroys a service whose storage cannot be destroyed. The service must
// remain too, so that the operator can repeat the command.
func TestServiceStaysWithItsStorage(t *testing.T) {
	for _, force := range []bool{false, true} {
		w := newTestEnv(t)
		w.mustRun("bootstrap")
		w.mustRun("deploy", w.writeCharm("db", "storage: {data: {type: filesystem}}\n"))
		e, err := w.home.Choose("")
		if err != nil {
			t.Fatal(err)
		}
		st := statetest.Open(t, e.State)
		statetest.Update(t, st, func(tx *state.Tx) error { return tx.Keys().Put(keys.UnitStorage("db/0"), "damaged") })

		args := []string{"destroy-service", "db", "--destroy-storage"}
		if force {
			args = append(args, "--force")
		}
		w.mustFail(1, "cannot decode", args...)

		s, err := state.Read(t.Context(), st, func(v *state.View) (state.Service, error) { return v.Service("db") })
		if err != nil || s.Life != state.Alive {
			t.Errorf("%q: the service is %q, error %v; it is to be alive", args, s.Life, err)
		}
	}
}

// interruptedStore ends the command's context at a commit, which then fails.
type interruptedStore struct {
	store.Store
	left      int
	interrupt context.CancelFunc
}

func (s *interruptedStore) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if s.left--; s.left == 0 {
		s.interrupt()
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.Store.Commit(ctx, txn)
}

// TestInterruptCancelsWhatWasQueued interrupts juju run while it queues a command for many units. No unit may
// run the command.
func TestInterruptCancelsWhatWasQueued(t *testing.T) {
	st := statetest.New(t)
	var units []string
	for _, u := range statetest.AddService(t, st, statetest.MySQL(), maxEnqueueBatch+1) {
		units = append(units, u.Name)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrapped := statetest.ShareWrapped(st, func(s store.Store) store.Store { return &interruptedStore{s, 2, cancel} })
	defer wrapped.Close()
	_, err := enqueueCommand(&operator{ctx: ctx}, wrapped, units, []string{"true"})
	if !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "canceled") != 1 {
		t.Errorf("error %v", err)
	}

	for _, unit := range units {
		queued, err := state.Read(t.Context(), st, func(v *state.View) ([]actions.Action, error) { return actions.List(v, unit) })
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(queued, func(a actions.Action) bool { return a.Status == actions.Pending }) {
			t.Errorf("unit %q runs the command all the same", unit)
		}
	}
}
