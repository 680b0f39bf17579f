package leader

import (
	"context"
	"slices"
	"strings"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// snapshotCache is the leader's snapshot, read once and kept current by the changes of
// workers, gates and presences, which are many. A change of anything else, or one that
// the store does not tell in full, makes it stale. It may lag behind the store, so that
// nothing is written because of it without a condition.
type snapshotCache struct {
	store           *keyspace.Space
	feed            *updater.ChangeFeed
	ownVersion      string
	stale           bool // everything has to be read again
	revision        int64
	requestRevision int64 // at which the request was written
	snapshot        decide.Snapshot
}

func (f *snapshotCache) catchUp(ctx context.Context) error {
	n := f.feed.Take()
	f.stale = f.stale || n.All
	for _, c := range n.Changes {
		f.stale = f.stale || !f.applyChange(c)
	}
	if !f.stale {
		return nil
	}
	err := f.store.View(ctx, f.reload)
	f.stale = err != nil
	return err
}

func (f *snapshotCache) reload(v *keyspace.View) (err error) {
	if f.snapshot, err = decide.Load(v, f.ownVersion); err != nil {
		return err
	}
	var r record.Request
	if f.requestRevision, err = v.GetAt(keys.Current, &r); err != nil {
		return err
	}
	f.revision, err = v.Revision()
	return err
}

// applyChange reports whether the change could be applied; else the cache is stale.
func (f *snapshotCache) applyChange(c keyspace.Change) bool {
	switch {
	case c.Revision <= f.revision:
		return true // it was read
	case !c.IsComplete():
		return false
	case c.Key == keys.Gate:
		f.snapshot.Gate = record.Gate{}
		return c.Deleted || keyspace.DecodeInto(c.KeyValue, &f.snapshot.Gate) == nil
	case strings.HasPrefix(c.Key, keys.Workers):
		return applyServerChange(f.snapshot.Workers, keys.Workers, c)
	case strings.HasPrefix(c.Key, keys.Presences):
		lrn, _ := record.ParseServerKey(keys.Presences, c.Key)
		return !slices.Contains(f.snapshot.Unseen, lrn) && applyServerChange(f.snapshot.Present, keys.Presences, c)
	case strings.HasPrefix(c.Key, keys.Inventories):
		return applyServerChange(f.snapshot.Inventories, keys.Inventories, c)
	}
	return false
}

func applyServerChange[T any](known map[int]T, prefix string, c keyspace.Change) bool {
	lrn, ok := record.ParseServerKey(prefix, c.Key)
	if !ok {
		return true
	}
	var doc T
	if !c.Deleted && keyspace.DecodeInto(c.KeyValue, &doc) != nil {
		return false // reading it says what is wrong
	}
	known[lrn] = doc
	if c.Deleted {
		delete(known, lrn)
	}
	return true
}
