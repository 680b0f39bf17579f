// Package trace is a store that wraps another store and logs its use: keys and revisions, never values.
//
// It stores nothing itself.
package trace

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"bijou/state/secret"
	"bijou/state/store"
)

// New returns a store that logs the use of s at level debug. If that level is not enabled, it returns s.
func New(ctx context.Context, s store.Store, log *slog.Logger) store.Store {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return s
	}
	return &traced{Store: s, log: log}
}

// traced logs all calls except Close. For a snapshot it logs only the number of reads.
type traced struct {
	store.Store
	log *slog.Logger
}

// snapshot counts its reads. Several goroutines can use it at the same time.
type snapshot struct {
	store.Snapshot
	log *slog.Logger

	gets, lists atomic.Int64 // calls of Get and List
	keys        atomic.Int64 // keys that List has returned
	closed      atomic.Bool
}

// Snapshot opens a snapshot, which logs the number of its reads when it is closed.
func (t *traced) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := t.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot{Snapshot: s, log: t.log}, nil
}

// Get counts the call.
func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.gets.Add(1)
	return s.Snapshot.Get(ctx, key)
}

// List counts the call and the keys.
func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	s.lists.Add(1)
	s.keys.Add(int64(len(kvs)))
	return kvs, err
}

// Close closes the snapshot. The first call also logs the counts.
func (s *snapshot) Close() {
	s.Snapshot.Close()
	if !s.closed.Swap(true) {
		s.log.Debug("snapshot", "gets", s.gets.Load(), "lists", s.lists.Load(), "keys", s.keys.Load())
	}
}

// Commit logs the written keys, the number of conditions, and how long the commit took.
func (t *traced) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	begun := time.Now()
	revision, err := t.Store.Commit(ctx, txn)
	t.log.Debug("commit",
		"puts", opKeys(txn.Ops, false), "deletes", opKeys(txn.Ops, true), "conditions", len(txn.Conds),
		"revision", revision, "took", time.Since(begun), "error", err)
	return revision, err
}

// Health returns the health of the traced store, or nil if it reports none.
func (t *traced) Health(ctx context.Context) map[string]string {
	if h, ok := t.Store.(store.HealthReporter); ok {
		return h.Health(ctx)
	}
	return nil
}

// SecretKeeper returns the traced store's keeper of secrets, or nil if it has none.
func (t *traced) SecretKeeper() secret.Keeper {
	if h, ok := t.Store.(store.SecretHolder); ok {
		return h.SecretKeeper()
	}
	return nil
}

// Sweep sweeps the traced store, if it is a Sweeper.
func (t *traced) Sweep(ctx context.Context) error {
	if s, ok := t.Store.(store.Sweeper); ok {
		return s.Sweep(ctx)
	}
	return nil
}

// Advisories returns the advisories of the traced store, or nil if it has none.
func (t *traced) Advisories(ctx context.Context) []string {
	if a, ok := t.Store.(store.Adviser); ok {
		return a.Advisories(ctx)
	}
	return nil
}

// GrantLease grants a lease of the traced store. It returns an error if the store is not a LeaseGranter.
func (t *traced) GrantLease(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	g, ok := t.Store.(store.LeaseGranter)
	if !ok {
		return 0, errNoGranter
	}

	id, err := g.GrantLease(ctx, ttl)
	t.log.Debug("lease for another process", "id", id, "ttl", ttl, "error", err)
	return id, err
}

// RefreshLease refreshes a lease of the traced store, and logs nothing.
func (t *traced) RefreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	if g, ok := t.Store.(store.LeaseGranter); ok {
		return g.RefreshLease(ctx, id)
	}
	return false, errNoGranter
}

// RevokeLease revokes a lease of the traced store. It returns an error if the store is not a LeaseGranter.
func (t *traced) RevokeLease(ctx context.Context, id store.LeaseID) error {
	g, ok := t.Store.(store.LeaseGranter)
	if !ok {
		return errNoGranter
	}

	err := g.RevokeLease(ctx, id)
	t.log.Debug("lease of another process is revoked", "id", id, "error", err)
	return err
}

var errNoGranter = errors.New("the store does not grant leases for other processes")

// opKeys returns the keys of the deletions if deleted is true, and the keys of the puts otherwise.
func opKeys(ops []store.Op, deleted bool) (keys []string) {
	for _, o := range ops {
		if o.Delete == deleted {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// Watch logs the watched keys and prefixes. The watcher logs each batch.
func (t *traced) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	w, err := t.Store.Watch(ctx, after, scope)
	t.log.Debug("watch", "after", after, "keys", scope.Keys, "prefixes", scope.Prefixes, "error", err)
	if err != nil {
		return nil, err
	}
	return &watcher{Watcher: w, log: t.log}, nil
}

// Lease logs the id of the granted lease.
func (t *traced) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	l, err := t.Store.Lease(ctx, ttl)
	if err != nil {
		t.log.Debug("lease", "error", err)
		return nil, err
	}

	t.log.Debug("lease", "id", l.ID(), "ttl", ttl)
	return l, nil
}

// watcher logs the batches that it returns.
type watcher struct {
	store.Watcher
	log *slog.Logger
}

// Next logs the batch's keys.
func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	b, err := w.Watcher.Next(ctx)
	changed := make([]string, len(b.Events))
	for i, e := range b.Events {
		changed[i] = e.Key
	}
	w.log.Debug("changes", "revision", b.Revision, "keys", changed, "error", err)
	return b, err
}
