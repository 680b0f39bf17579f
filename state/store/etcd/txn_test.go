package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/kit/need"
)

// TestLimits fills transactions with the contents that are most expensive for etcd.
func TestLimits(t *testing.T) {
	need.Whole(t)
	s := newStore(t, clusters.borrow(t, 1))
	defer s.Close()
	l, err := s.Lease(t.Context(), time.Minute)
	check(t, err)
	const leased = 640
	for from := 0; from < leased; from += 128 {
		var txn store.Txn
		for i := range 128 {
			txn.Ops = append(txn.Ops, store.Op{Key: fmt.Sprintf("leased/%d", from+i), Lease: l.ID()})
		}
		commit(t, s, txn)
	}
	base := revision(t, s)
	var txn store.Txn
	for i := range store.MaxOps {
		txn.Conds = append(txn.Conds, store.Cond{Prefix: fmt.Sprintf("p/%d/", i), Revision: base})
		txn.Ops = append(txn.Ops, store.Op{Key: fmt.Sprintf("leased/%d", i), Delete: true})
	}
	txn.Conds[7].Prefix = "leased/" // leased keys count too
	commit(t, s, txn)
	if n := len(list(t, s, "leased/")); n != leased-store.MaxOps {
		t.Errorf("%d keys are left", n)
	}

	// Each condition must be checked, no matter where it is in the transaction.
	for i := range txn.Conds {
		if i != 7 {
			txn.Conds[i].Revision = revision(t, s)
		}
	}
	_, err = s.Commit(t.Context(), txn)
	wantError(t, err, store.ErrConflict)
	txn.Conds[7].Revision = revision(t, s)
	for i := 0; i < store.MaxConds; i += 35 {
		put(t, s, fmt.Sprintf("p/%d/x", i))
		_, err = s.Commit(t.Context(), txn)
		wantError(t, err, store.ErrConflict)
		txn.Conds[i].Revision = revision(t, s)
	}
	commit(t, s, txn)
}

// TestPrefixLeases checks that keys that were written under a lease, or that a lease has deleted, break a
// prefix condition, whether or not its handle has listed the prefix.
func TestPrefixLeases(t *testing.T) {
	need.Whole(t)
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprintf("listed=%t", listed), func(t *testing.T) {
			s := newStore(t, clusters.borrow(t, 1))
			defer s.Close()
			lease := func(key string) store.Lease {
				l, err := s.Lease(t.Context(), time.Minute)
				check(t, err)
				commit(t, s, store.Txn{Ops: []store.Op{{Key: key, Lease: l.ID()}}})
				return l
			}
			there := lease("p/there")
			base := revision(t, s)
			if listed {
				snap, err := s.Snapshot(t.Context())
				check(t, err)
				_, err = snap.List(t.Context(), "p/")
				check(t, err)
				snap.Close()
			}
			cond := func() error {
				_, err := s.Commit(t.Context(), store.Txn{
					Conds: []store.Cond{{Prefix: "p/", Revision: base}}, Ops: []store.Op{{Key: "out"}},
				})
				return err
			}
			check(t, cond())
			check(t, lease("q/other").Close(t.Context()))
			check(t, cond())
			check(t, there.Close(t.Context()))
			wantError(t, cond(), store.ErrConflict)

			base = revision(t, s)
			check(t, cond())
			check(t, lease("p/brief").Close(t.Context()))
			wantError(t, cond(), store.ErrConflict)
		})
	}
}

func TestSweep(t *testing.T) {
	need.Whole(t)
	s := newStore(t, clusters.borrow(t, 1))
	defer s.Close()
	put(t, s, "p/a", "p/b", "q/a")
	base := revision(t, s)
	deleted := commit(t, s, store.Txn{Ops: []store.Op{{Key: "p/a", Delete: true}}})
	later := commit(t, s, store.Txn{Ops: []store.Op{{Key: "q/a", Delete: true}}})
	check(t, etcd.Sweep(t.Context(), s, deleted))
	n, err := etcd.Marks(t.Context(), s)
	check(t, err)
	if n != 1 {
		t.Errorf("%d marks are left, want the one that is newer than the sweep", n)
	}
	for _, c := range []struct {
		cond store.Cond
		want error
	}{
		{store.Cond{Prefix: "p/", Revision: base}, store.ErrConflict},    // broken
		{store.Cond{Prefix: "r/", Revision: base}, store.ErrConflict},    // unknown
		{store.Cond{Prefix: "p/", Revision: deleted}, nil},               // fulfilled, since the deletion is not after the revision
		{store.Cond{Prefix: "q/", Revision: deleted}, store.ErrConflict}, // its mark was kept
		{store.Cond{Prefix: "q/", Revision: later}, nil},
	} {
		_, err := s.Commit(t.Context(), store.Txn{Conds: []store.Cond{c.cond}})
		wantError(t, err, c.want)
	}
}

// TestManyPages lists keys of all sizes that need more than one page.
func TestManyPages(t *testing.T) {
	need.Whole(t)
	s := newStore(t, clusters.borrow(t, 1))
	defer s.Close()
	const batches, each = 30, 128
	value := make([]byte, 6<<10)
	for i := range batches {
		var txn store.Txn
		for j := range each {
			txn.Ops = append(txn.Ops, store.Op{Key: fmt.Sprintf("%02d/%03d", i, j), Value: value[:len(value)*i/batches]})
		}
		commit(t, s, txn)
	}
	kvs := list(t, s, "")
	if len(kvs) != batches*each {
		t.Fatalf("got %d keys", len(kvs))
	}
	for i, kv := range kvs {
		if want := fmt.Sprintf("%02d/%03d", i/each, i%each); kv.Key != want {
			t.Fatalf("key %d is %q, want %q", i, kv.Key, want)
		}
	}
}
