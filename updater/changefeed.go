package updater

import (
	"context"
	"errors"
	"time"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
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

// Change is one key to write; a nil Value removes it. All changes of one decision are one
// transaction, conditional on all that the decision was made on.
type Change struct {
	Key   string
	Value any
}

// Put returns the change that writes the key.
func Put(key string, value any) Change { return Change{Key: key, Value: value} }

// Remove returns the change that removes the key.
func Remove(key string) Change { return Change{Key: key} }

// Apply puts a decision's changes into a transaction.
func Apply(tx *keyspace.Tx, changes []Change) error {
	for _, c := range changes {
		if c.Value == nil {
			tx.Remove(c.Key)
			continue
		}
		if err := tx.Put(c.Key, c.Value); err != nil {
			return err
		}
	}
	return nil
}

// Audit records what somebody does, in the transaction that does it.
func Audit(tx *keyspace.Tx, a record.Audit) error {
	last, _, err := keyspace.Load[int](tx, keys.AuditCounter)
	if err != nil {
		return err
	}
	a.ID, a.At = last+1, time.Now().UTC()
	return errors.Join(tx.Put(keys.AuditCounter, a.ID), tx.Put(keys.Audit(a.ID), a))
}
