package updater

import (
	"context"
	"errors"
	"strings"

	"bijou/state/keyspace"
)

// ChangeFeed collects changes of some keys until its owner takes them. It is for owners that keep a copy of
// the keys and must update it after changes.
type ChangeFeed struct {
	*keyspace.Feed
	store *keyspace.Space
	scope keyspace.Scope
}

// NewChangeFeed returns a feed of changes of the named keys and prefixes. A name that ends with a slash is
// a prefix, as in package keys. The feed collects changes only while Run runs.
func NewChangeFeed(s *keyspace.Space, names ...string) *ChangeFeed {
	var scope keyspace.Scope
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			scope.Prefixes = append(scope.Prefixes, name)
		} else {
			scope.Keys = append(scope.Keys, name)
		}
	}

	return &ChangeFeed{Feed: keyspace.NewFeed(), store: s, scope: scope}
}

// Run watches the keys until ctx is done. If a watcher ends, or misses changes because of a compaction of the
// store, Run starts a new watcher and marks all keys as changed. Run returns the store's error if no retry can
// help. Once ctx is done, it returns nil or ctx's error.
func (f *ChangeFeed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.watch(ctx)
		// After lost history, the store works, so a new watcher can start at once.
		if ctx.Err() == nil && !errors.Is(err, keyspace.ErrHistoryLost) {
			if err := AwaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}

	return nil
}

// watch marks all keys as changed, and then collects changes until its watcher ends. It always returns an
// error.
func (f *ChangeFeed) watch(ctx context.Context) error {
	revision, err := keyspace.Read(ctx, f.store, (*keyspace.View).Revision)
	if err != nil {
		return err
	}

	w, err := f.store.Watch(ctx, revision, f.scope)
	if err != nil {
		return err
	}
	defer w.Close()

	// The watcher reports no changes before the revision.
	f.Invalidate()
	return f.Collect(ctx, w)
}
