package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bijou/state/store"
)

// Scope is a part of the environment that can be watched.
type Scope struct {
	exact    []string
	prefixes []string
}

// Has reports whether the key is in the scope.
func (s Scope) Has(key string) bool {
	under := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return slices.Contains(s.exact, key) || slices.ContainsFunc(s.prefixes, under)
}

// Watcher delivers which keys of its scopes changed. It is for one goroutine at a time,
// but for Close.
type Watcher struct {
	w      store.Watcher
	scopes []Scope
}

// Watch delivers what changed after the revision (View.Revision), in order.
func (s *State) Watch(ctx context.Context, after int64, scopes ...Scope) (*Watcher, error) {
	var prefixes []string
	for _, sc := range scopes {
		prefixes = append(prefixes, sc.prefixes...)
		prefixes = append(prefixes, sc.exact...)
	}
	slices.Sort(prefixes)
	w, err := s.store.Watch(ctx, after, slices.Compact(prefixes)...)
	if err != nil {
		return nil, err
	}
	return &Watcher{w: w, scopes: scopes}, nil
}

// Next blocks until the next commit that touched one of the scopes, and returns the keys
// that it touched there. A watcher is there to wake: take a new View for their values.
// ErrHistoryLost: events are missing, take a new View and watch from its revision;
// ErrStoreGone and ErrClosed end it, too.
func (w *Watcher) Next(ctx context.Context) ([]string, error) {
	batch, err := w.nextBatch(ctx)
	var keys []string
	for _, e := range batch.Events {
		keys = append(keys, e.Key)
	}
	return keys, err
}

// Changes is Next with the keys' values, as far as the store tells them.
func (w *Watcher) Changes(ctx context.Context) ([]KeyChange, error) {
	batch, err := w.nextBatch(ctx)
	var changes []KeyChange
	for _, e := range batch.Events {
		kv := KeyValue{Key: e.Key, Value: e.Value, Revision: batch.Revision}
		changes = append(changes, KeyChange{KeyValue: kv, Deleted: e.Deleted})
	}
	return changes, err
}

func (w *Watcher) nextBatch(ctx context.Context) (store.Batch, error) {
	for {
		batch, err := w.w.Next(ctx)
		if err != nil {
			return store.Batch{}, err
		}
		touched := store.Batch{Revision: batch.Revision}
		for _, e := range batch.Events {
			if slices.ContainsFunc(w.scopes, func(s Scope) bool { return s.Has(e.Key) }) {
				touched.Events = append(touched.Events, e)
			}
		}
		if len(touched.Events) > 0 {
			return touched, nil
		}
	}
}

// Close ends the watcher, and a Next that blocks.
func (w *Watcher) Close() { w.w.Close() }

func (s *State) awaitAbsent(ctx context.Context, key string) error {
	for {
		var there bool
		var revision int64
		err := s.View(ctx, func(v *View) (err error) {
			if _, there, err = v.get(key); err != nil {
				return err
			}
			revision, err = v.Revision()
			return err
		})
		if err != nil || !there {
			return err
		}
		if err := s.awaitChange(ctx, key, revision); err != nil && !errors.Is(err, ErrHistoryLost) {
			return err
		}
	}
}

// awaitChange blocks until the key is written after the revision.
func (s *State) awaitChange(ctx context.Context, key string, revision int64) error {
	w, err := s.Watch(ctx, revision, Scope{exact: []string{key}})
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Next(ctx)
	return err
}
