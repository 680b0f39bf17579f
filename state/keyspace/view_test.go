package keyspace

import (
	"context"
	"errors"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// readsOnce is a store whose second read fails. Nothing can be read after that.
type readsOnce struct {
	store.Store
	reads int
}

type readOnce struct {
	store.Snapshot
	of *readsOnce
}

func (s *readsOnce) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	return &readOnce{snap, s}, err
}

func (s *readOnce) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if s.of.reads++; s.of.reads > 1 {
		return store.KV{}, false, store.ErrAway
	}
	return s.Snapshot.Get(ctx, key)
}

func TestAfterAFailureAllReadsFailAtOnce(t *testing.T) {
	st := &readsOnce{Store: memstore.New()}
	space := New(st, nil)
	defer space.Close()
	read := func(v *View) error {
		_, _, first := v.Get("a")
		_, _, second := v.Get("b")
		_, _, third := v.Get("c")
		_, listed := v.List("d")
		_, revision := v.Revision()
		if first != nil || errors.Join(second, third) == nil {
			t.Errorf("the reads returned %v, %v and %v", first, second, third)
		}
		for _, err := range []error{second, third, listed, revision, v.Prefetch(Exactly("e"))} {
			if !errors.Is(err, store.ErrAway) {
				t.Errorf("after a read that has failed one returned %v", err)
			}
		}
		return second
	}
	if err := space.View(t.Context(), read); !errors.Is(err, store.ErrAway) || st.reads != 2 {
		t.Errorf("a view with a failure returned %v after %d reads", err, st.reads)
	}
	st.reads = 0
	if err := space.Update(t.Context(), func(tx *Tx) error { return read(tx.View) }); !errors.Is(err, store.ErrAway) || st.reads != 2 {
		t.Errorf("an update with a failure returned %v after %d reads", err, st.reads)
	}
}
