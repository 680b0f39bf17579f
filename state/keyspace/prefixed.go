package keyspace

import (
	"context"
	"slices"
	"strings"

	"bijou/state/store"
)

// prefixed is the part of a store below a prefix, which its keys do not show.
type prefixed struct {
	store.Store
	prefix string
}

func (p *prefixed) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := p.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &prefixedSnapshot{Snapshot: s, prefix: p.prefix}, nil
}

func (p *prefixed) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	whole := store.Txn{Conds: slices.Clone(txn.Conds), Ops: slices.Clone(txn.Ops)}
	for i := range whole.Conds {
		if c := &whole.Conds[i]; c.Key != "" {
			c.Key = p.prefix + c.Key
		} else {
			c.Prefix = p.prefix + c.Prefix
		}
	}
	for i := range whole.Ops {
		whole.Ops[i].Key = p.prefix + whole.Ops[i].Key
	}
	return p.Store.Commit(ctx, whole)
}

func (p *prefixed) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	whole := make([]string, len(prefixes))
	for i := range prefixes {
		whole[i] = p.prefix + prefixes[i]
	}
	w, err := p.Store.Watch(ctx, after, whole...)
	if err != nil {
		return nil, err
	}
	return &prefixedWatcher{Watcher: w, prefix: p.prefix}, nil
}

type prefixedSnapshot struct {
	store.Snapshot
	prefix string
}

func (s *prefixedSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := s.Snapshot.Get(ctx, s.prefix+key)
	kv.Key = strings.TrimPrefix(kv.Key, s.prefix)
	return kv, ok, err
}

func (s *prefixedSnapshot) Prefetch(ctx context.Context, keys ...string) error {
	whole := make([]string, len(keys))
	for i := range keys {
		whole[i] = s.prefix + keys[i]
	}
	return s.Snapshot.Prefetch(ctx, whole...)
}

func (s *prefixedSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, s.prefix+prefix)
	kvs = slices.Clone(kvs)
	for i := range kvs {
		kvs[i].Key = strings.TrimPrefix(kvs[i].Key, s.prefix)
	}
	return kvs, err
}

type prefixedWatcher struct {
	store.Watcher
	prefix string
}

func (w *prefixedWatcher) Next(ctx context.Context) (store.Batch, error) {
	b, err := w.Watcher.Next(ctx)
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i].Key = strings.TrimPrefix(b.Events[i].Key, w.prefix)
	}
	return b, err
}
