package updater

import (
	"context"
	"errors"

	"bijou/state/keyspace"
)

// ChangeFeed collects changes below some prefixes until its owner takes them: for owners
// that cache what they have read, and follow the changes.
type ChangeFeed struct {
	*keyspace.Feed
	store    *keyspace.Space
	prefixes []string
}

// NewChangeFeed returns one of the prefixes, which collects as long as it runs.
func NewChangeFeed(s *keyspace.Space, prefixes ...string) *ChangeFeed {
	return &ChangeFeed{keyspace.NewFeed(), s, prefixes}
}

// Run watches until ctx is done. A watcher that ended, or was behind a compaction of the
// store, is replaced, and everything counts as changed.
func (f *ChangeFeed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, keyspace.ErrHistoryLost) {
			if err := AwaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}

	return nil
}

func (f *ChangeFeed) watch(ctx context.Context) error {
	revision, err := keyspace.Read(ctx, f.store, (*keyspace.View).Revision)
	if err != nil {
		return err
	}

	w, err := f.store.Watch(ctx, revision, keyspace.Below(f.prefixes...))
	if err != nil {
		return err
	}
	defer w.Close()
	f.Invalidate()
	return f.Collect(ctx, w)
}
