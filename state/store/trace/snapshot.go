package trace

import (
	"context"
	"log/slog"
	"sync/atomic"

	"bijou/state/store"
)

// snapshot counts what is read in it. It may be used by several goroutines.
type snapshot struct {
	store.Snapshot
	log *slog.Logger

	gets, lists, keys atomic.Int64
	closed            atomic.Bool
}

// Snapshot logs, when it is closed, how much was read in it.
func (t *traced) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := t.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot{Snapshot: s, log: t.log}, nil
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.gets.Add(1)
	return s.Snapshot.Get(ctx, key)
}

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	s.lists.Add(1)
	s.keys.Add(int64(len(kvs)))
	return kvs, err
}

func (s *snapshot) Close() {
	s.Snapshot.Close()
	if !s.closed.Swap(true) {
		s.log.Debug("snapshot", "gets", s.gets.Load(), "lists", s.lists.Load(), "keys", s.keys.Load())
	}
}
