package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"bijou/state/store"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/fakes/memstore"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Opener{
		Bubble:  true,
		Fresh:   func(testing.TB) store.Store { return memstore.New() },
		Share:   func(_ testing.TB, s store.Store) store.Store { return memstore.Share(s) },
		Compact: func(_ testing.TB, s store.Store, revision int64) { memstore.Compact(s, revision) },
		Expire:  func(_ testing.TB, s store.Store, id store.LeaseID) { memstore.Expire(s, id) },
		Kill:    func(_ testing.TB, s store.Store) { memstore.Abandon(s) },
	})
}

// TestBubble checks that waiting for a batch and for an abandoned lease takes no time in a synctest bubble, and
// that nothing outlives Close.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memstore.New()
		b := memstore.Share(a)
		l, err := b.Lease(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		revision, err := b.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "k", Lease: l.ID()}}})
		if err != nil {
			t.Fatal(err)
		}
		w, err := a.Watch(t.Context(), revision, store.Below("k"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		memstore.Abandon(b)
		if _, err := w.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the key vanished after %v", d)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
