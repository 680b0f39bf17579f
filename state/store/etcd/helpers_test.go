package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

var prefixed = clientv3.WithPrefix()

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// put commits the keys in one transaction.
func put(t testing.TB, s store.Store, keys ...string) int64 {
	t.Helper()
	var txn store.Txn
	for _, key := range keys {
		txn.Ops = append(txn.Ops, store.Op{Key: key, Value: []byte("v")})
	}
	return commit(t, s, txn)
}

func commit(t testing.TB, s store.Store, txn store.Txn) int64 {
	t.Helper()
	r, err := s.Commit(t.Context(), txn)
	check(t, err)
	return r
}

func list(t testing.TB, s store.Store, prefix string) []store.KV {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	kvs, err := snap.List(t.Context(), prefix)
	check(t, err)
	return kvs
}

func revision(t testing.TB, s store.Store) int64 {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	r, err := snap.Revision(t.Context())
	check(t, err)
	return r
}

// commitUntilKnown commits until the result is known. The transaction must be repeatable.
func commitUntilKnown(ctx context.Context, s store.Store, txn store.Txn) (int64, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
		r, err := s.Commit(attempt, txn)
		cancel()
		if err == nil || ctx.Err() != nil {
			return r, err
		}
	}
}
