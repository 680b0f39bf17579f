package state

import (
	"context"
	"errors"
	"strings"
)

// KeyWatcher delivers which keys changed. It is for one goroutine at a time, but for
// Close.
type KeyWatcher struct {
	watcher *Watcher
	root    string
}

// Watch delivers what changed after the revision below one of the prefixes; a
// key is its own prefix.
func (k *Keyspace) Watch(ctx context.Context, after int64, prefixes ...string) (*KeyWatcher, error) {
	var scope Scope
	for _, p := range prefixes {
		scope.prefixes = append(scope.prefixes, k.root+p)
	}
	w, err := k.state.Watch(ctx, after, scope)
	if err != nil {
		return nil, err
	}
	return &KeyWatcher{watcher: w, root: k.root}, nil
}

// Next blocks until the next commit there, and returns the keys that it touched.
// ErrHistoryLost: events are missing, take a new View and watch from its revision.
func (w *KeyWatcher) Next(ctx context.Context) ([]string, error) {
	keys, err := w.watcher.Next(ctx)
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], w.root)
	}
	return keys, err
}

// KeyChange is the change of one key by a commit. Its Revision is the commit's; its
// Value is empty if the key was deleted, and where the store does not tell: then it is
// to be read.
type KeyChange struct {
	KeyValue
	Deleted bool
}

// IsComplete reports whether the change is complete: it has the key's value, or the key is
// gone.
func (c KeyChange) IsComplete() bool { return c.Deleted || len(c.Value) > 0 }

// Changes is Next with the keys' values, as far as the store tells them.
func (w *KeyWatcher) Changes(ctx context.Context) ([]KeyChange, error) {
	changes, err := w.watcher.Changes(ctx)
	for i := range changes {
		changes[i].Key = strings.TrimPrefix(changes[i].Key, w.root)
	}
	return changes, err
}

// Close ends the watcher, and a Next that blocks.
func (w *KeyWatcher) Close() { w.watcher.Close() }

// Await blocks until something has changed below one of the prefixes after the revision,
// or may have: the watcher was behind. Its caller takes a new View.
func (k *Keyspace) Await(ctx context.Context, after int64, prefixes ...string) error {
	w, err := k.Watch(ctx, after, prefixes...)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err = w.Next(ctx); errors.Is(err, ErrHistoryLost) {
		return nil
	}
	return err
}
