package state

import (
	"context"
	"io"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/state/store"
)

// Keys returns the space of the keys below the entities, for the packages in directories of state.
func (s *State) Keys() *keyspace.Space { return s.space }

// Close ends the sessions and watchers of this State and frees its store. It is idempotent.
func (s *State) Close() error { return s.space.Close() }

// Store returns the store itself, for callers that copy or serve all of its keys.
func (s *State) Store() store.Store { return s.space.Store() }

// Advisories does what [keyspace.Space.Advisories] does.
func (s *State) Advisories(ctx context.Context) []string { return s.space.Advisories(ctx) }

// Metrics returns the registry that SetMetrics has set. It returns nil if nothing is measured.
func (s *State) Metrics() *metrics.Registry { return s.space.Metrics }

// SetMetrics sets the registry for the store's latencies and for the metrics of the State's users. It must be
// called before the State is shared.
func (s *State) SetMetrics(r *metrics.Registry) { s.space.Metrics = r }

// SetProgress sets the function that receives the progress of long jobs, as [keyspace.Space] describes. It
// must be called before the State is shared.
func (s *State) SetProgress(p keyspace.Progress) { s.space.Progress = p }

// Damaged returns the function that SetDamaged has set. It returns nil if damaged records go to the default
// logger.
func (s *State) Damaged() func(err error) { return s.space.Damaged }

// SetDamaged sets the function that receives the error of each record that a listing has skipped, as
// [keyspace.Space] describes. It must be called before the State is shared.
func (s *State) SetDamaged(f func(err error)) { s.space.Damaged = f }

// Skips does what [keyspace.Space.Skips] does.
func (s *State) Skips(err error) bool { return s.space.Skips(err) }

// NewSession does what [keyspace.Space.NewSession] does.
func (s *State) NewSession(ctx context.Context) (*Session, error) { return s.space.NewSession(ctx) }

// Watch delivers the changes after the revision ([View.Revision]), in order.
func (s *State) Watch(ctx context.Context, after int64, scopes ...Scope) (*Watcher, error) {
	return s.space.Watch(ctx, after, scopes...)
}

// Await does what [keyspace.Space.Await] does.
func (s *State) Await(ctx context.Context, after int64, scopes ...Scope) error {
	return s.space.Await(ctx, after, scopes...)
}

// PutBlob does what [keyspace.Space.PutBlob] does.
func (s *State) PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	return s.space.PutBlob(ctx, r)
}

// PutFile does what [keyspace.Space.PutFile] does.
func (s *State) PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error) {
	return s.space.PutFile(ctx, r)
}

// OpenBlob does what [keyspace.Space.OpenBlob] does.
func (s *State) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	return s.space.OpenBlob(ctx, sum)
}
