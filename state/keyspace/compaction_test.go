package keyspace

import (
	"context"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// compactingStore is a store that discards the revision of the first snapshots after one read, like an etcd
// that is compacted at that moment.
type compactingStore struct {
	store.Store
	times int
}

func (d *compactingStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := d.Store.Snapshot(ctx)
	if d.times == 0 {
		return s, err
	}
	d.times--
	return &compactedSnapshot{Snapshot: s}, err
}

type compactedSnapshot struct {
	store.Snapshot
	reads int
}

func (d *compactedSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if d.reads++; d.reads > 1 {
		return store.KV{}, false, store.ErrHistoryLost
	}
	return d.Snapshot.Get(ctx, key)
}

func TestARevisionThatIsDroppedMeanwhileIsReadAnew(t *testing.T) {
	s := New(&compactingStore{Store: memstore.New(), times: 2}, nil)
	defer s.Close()
	read := func(v *View) error {
		for _, key := range []string{"a", "b"} {
			if _, _, err := v.Get(key); err != nil {
				return err
			}
		}
		return nil
	}
	runs := 0
	if err := s.View(t.Context(), func(v *View) error { runs++; return read(v) }); err != nil || runs != 3 {
		t.Errorf("a view ran %d times: %v", runs, err)
	}
	s.Store().(*compactingStore).times, runs = 2, 0
	err := s.Update(t.Context(), func(tx *Tx) error {
		runs++
		if err := read(tx.View); err != nil {
			return err
		}
		return tx.Put("c", 1)
	})
	if err != nil || runs != 3 {
		t.Errorf("an update ran %d times: %v", runs, err)
	}
}
