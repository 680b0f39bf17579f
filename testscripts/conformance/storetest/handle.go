package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"bijou/state/store"
)

// handle is one handle on a store, with methods that fail the test themselves.
type handle struct {
	*testing.T
	ctx context.Context
	s   store.Store
}

// put returns an operation that writes a key.
func put(key, value string) store.Op { return store.Op{Key: key, Value: []byte(value)} }

// del returns an operation that deletes a key.
func del(key string) store.Op { return store.Op{Key: key, Delete: true} }

// write commits operations without conditions.
func (h handle) write(ops ...store.Op) int64 {
	h.Helper()
	return h.commit(store.Txn{Ops: ops})
}

func (h handle) commit(txn store.Txn) int64 {
	h.Helper()
	revision, err := h.s.Commit(h.ctx, txn)
	h.ok(err)
	return revision
}

// refused commits and expects that error.
func (h handle) refused(want error, txn store.Txn) {
	h.Helper()
	_, err := h.s.Commit(h.ctx, txn)
	h.is(err, want)
}

func (h handle) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h handle) is(err, want error) {
	h.Helper()
	if !errors.Is(err, want) {
		h.Fatalf("got error %v, want %v", err, want)
	}
}

func (h handle) equal(got, want any) {
	h.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		h.Fatalf("(-want +got)\n%s", diff)
	}
}

func (h handle) snapshot() store.Snapshot {
	h.Helper()
	snap, err := h.s.Snapshot(h.ctx)
	h.ok(err)
	h.T.Cleanup(snap.Close)
	return snap
}

// revision returns the newest revision.
func (h handle) revision() int64 {
	h.Helper()
	snap := h.snapshot()
	defer snap.Close()
	return h.revisionOf(snap)
}

func (h handle) revisionOf(snap store.Snapshot) int64 {
	h.Helper()
	revision, err := snap.Revision(h.ctx)
	h.ok(err)
	return revision
}

// get reads one key from the snapshot. The key must exist.
func (h handle) get(snap store.Snapshot, key string) store.KV {
	h.Helper()
	kv, ok, err := snap.Get(h.ctx, key)
	h.ok(err)
	if !ok {
		h.Fatalf("key %q is absent", key)
	}
	return kv
}

func (h handle) absent(snap store.Snapshot, key string) {
	h.Helper()
	kv, ok, err := snap.Get(h.ctx, key)
	h.ok(err)
	if ok {
		h.Fatalf("key %q is there: %q", key, kv.Value)
	}
}

// listed checks a List of the snapshot against alternating keys and values.
func (h handle) listed(snap store.Snapshot, prefix string, want ...string) {
	h.Helper()
	kvs, err := snap.List(h.ctx, prefix)
	h.ok(err)
	got := []string{}
	for _, kv := range kvs {
		got = append(got, kv.Key, string(kv.Value))
	}
	h.equal(got, append([]string{}, want...))
}

// has checks a List of the newest snapshot against alternating keys and values.
func (h handle) has(prefix string, want ...string) {
	h.Helper()
	snap := h.snapshot()
	defer snap.Close()
	h.listed(snap, prefix, want...)
}

// value checks one key of the newest snapshot.
func (h handle) value(key string, want []byte) {
	h.Helper()
	snap := h.snapshot()
	defer snap.Close()
	if got := h.get(snap, key); !bytes.Equal(got.Value, want) {
		h.Fatalf("key %q has %d bytes, want %d, or they differ", key, len(got.Value), len(want))
	}
}

func (h handle) watch(after int64, prefixes ...string) store.Watcher {
	h.Helper()
	return h.watchScope(after, store.Below(prefixes...))
}

func (h handle) watchScope(after int64, scope store.Scope) store.Watcher {
	h.Helper()
	w, err := h.s.Watch(h.ctx, after, scope)
	h.ok(err)
	h.T.Cleanup(w.Close)
	return w
}

// next returns the watcher's next batch, with its events sorted by key and without values.
func (h handle) next(w store.Watcher) store.Batch {
	h.Helper()
	b, err := w.Next(h.ctx)
	h.ok(err)
	return bare(b)
}

// bare returns a batch with its events sorted by key and without values, which not every store reports.
func bare(b store.Batch) store.Batch {
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i].Value = nil
	}
	slices.SortFunc(b.Events, func(a, b store.Event) int { return cmp.Compare(a.Key, b.Key) })
	return b
}

// sees checks the watcher's next batch against keys. -KEY is a deletion.
func (h handle) sees(w store.Watcher, revision int64, keys ...string) {
	h.Helper()
	want := store.Batch{Revision: revision}
	for _, key := range keys {
		if key[0] == '-' {
			want.Events = append(want.Events, store.Event{Key: key[1:], Deleted: true})
		} else {
			want.Events = append(want.Events, store.Event{Key: key})
		}
	}
	h.equal(h.next(w), want)
}
