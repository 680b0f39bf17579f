package agent

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// hiding is a store that hides one key on request, as a damaged store would.
type hiding struct {
	store.Store
	key    string
	hides  atomic.Bool
	looked chan struct{} // buffered, since one message about a read of the key is enough
}

type hidingSnapshot struct {
	store.Snapshot
	h *hiding
}

func (h *hiding) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := h.Store.Snapshot(ctx)
	return hidingSnapshot{s, h}, err
}

func (s hidingSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if key != s.h.key || !s.h.hides.Load() {
		return s.Snapshot.Get(ctx, key)
	}
	select {
	case s.h.looked <- struct{}{}:
	default:
	}
	return store.KV{}, false, nil
}

// TestUnitIsGoneOnlyWithItsOwnRecord checks that an agent keeps a unit's directory when the store lacks the
// record of the service but still has the unit's own. The directory contains all the charm's data.
func TestUnitIsGoneOnlyWithItsOwnRecord(t *testing.T) {
	once(t, func(r *rig) {
		h := &hiding{key: "services/app", looked: make(chan struct{}, 1)}
		r.agents = statetest.ShareWrapped(r.st, func(s store.Store) store.Store { h.Store = s; return h })
		r.lonely(nil)
		r.start()
		r.awaitState("app/0", "started")
		h.hides.Store(true)
		off := "0"
		r.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.StatusInterval: &off}) })
		receive(t, "the service is looked for", h.looked)
		receive(t, "it is succeed again, so that the first answer was acted on", h.looked)
		if _, err := os.Stat(r.folder("app/0")); err != nil {
			t.Error(err)
		}
		h.hides.Store(false)
		statetest.Update(t, r.st, func(tx *state.Tx) error { return tx.DestroyUnit("app/0") })
		r.awaitNote("app/0", "stop")
	})
}

// TestMachineWithDamagedStorage checks that a record or list of storage that does not decode keeps the machine's
// agent neither from starting units nor from removing other storage.
func TestMachineWithDamagedStorage(t *testing.T) {
	for name, c := range map[string]struct {
		damaged string
		removes bool
	}{
		"a record": {keys.Storage("data/7"), true},
		"the list": {keys.MachineStorage("0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			once(t, func(r *rig) {
				r.lonely(nil)
				r.update(func(tx *state.Tx) error {
					list := []string{"data/7", "data/8"}
					dying := state.Storage{Machine: "0", Pool: "rootfs", Made: true, Life: state.Dying}
					return errors.Join(
						tx.Keys().Put(keys.Storage("data/7"), dying),
						tx.Keys().Put(keys.Storage("data/8"), dying),
						tx.Keys().Put(keys.MachineStorage("0"), state.MachineStorage{All: list, Removing: list}),
					)
				})
				_, err := r.st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: c.damaged, Value: []byte(`"damaged"`)}}})
				if err != nil {
					t.Fatal(err)
				}

				r.start()
				r.awaitState("app/0", "started")
				if !c.removes {
					return
				}
				r.eventually("the other storage is removed", func() bool {
					_, err := state.Read(t.Context(), r.st, func(v *state.View) (state.Storage, error) { return v.Storage("data/8") })
					return errors.Is(err, state.ErrNotFound)
				})
			})
		})
	}
}
