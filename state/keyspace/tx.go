package keyspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"bijou/state/backoff"
	"bijou/state/store"
)

// Tx is one run of an Update: a View whose reads see its own writes, and become
// conditions of the commit.
type Tx struct{ *View }

// Update calls f and commits what it wrote as one transaction, conditional on
// every key and prefix that it read. If one of them changed meanwhile, or the
// store dropped the revision that f reads at, f is run again from the start, so
// it must not act on anything but tx and results that a rerun overwrites. An
// error of f is returned, and nothing is written. Where f changes nothing,
// nothing is committed. ctx bounds it all.
//
// ErrTooLarge: f did more than one transaction holds (512 conditions, 512
// operations, 1 MiB). Errors other than this package's leave open whether it was
// written.
func (s *Space) Update(ctx context.Context, f func(tx *Tx) error) error {
	for attempt := 0; ; attempt++ {
		err := s.updateOnce(ctx, f)
		if errors.Is(err, store.ErrLeaseLost) {
			return fmt.Errorf("%w: %w", ErrSessionLost, err)
		}
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrHistoryLost) {
			return err
		}
		if err := backOff(ctx, attempt); err != nil {
			return fmt.Errorf("cannot update: %d conflicts with others: %w", attempt+1, err)
		}
	}
}

func (s *Space) updateOnce(ctx context.Context, f func(tx *Tx) error) error {
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	v := &View{ctx: ctx, snap: snap, buffer: newTxBuffer()}
	defer v.close()
	if err := f(&Tx{v}); err != nil {
		return err
	}
	revision, err := snap.Revision(ctx)
	if err != nil {
		return err
	}
	v.close()
	return s.commit(ctx, v.buffer, revision)
}

// commit writes the blobs that the transaction refers to, then the transaction.
func (s *Space) commit(ctx context.Context, b *txBuffer, revision int64) error {
	t := b.buildTxn(revision)
	if len(t.Ops) == 0 {
		return nil
	}
	t.Conds = append(t.Conds, s.guardConds(b)...)
	if err := s.attachBlobs(ctx, &t, b.blobs); err != nil {
		return err
	}
	_, err := s.store.Commit(ctx, t)
	switch {
	case errors.Is(err, store.ErrConflict):
		return cmp.Or(s.explainConflict(ctx, b), err)
	case errors.Is(err, store.ErrTooLarge):
		return fmt.Errorf("cannot update: its caller must work in batches: %w", err)
	}
	return err
}

// backOff waits after a conflict: longer each time up to a quarter of a second, and at
// random, so that those who met once do not meet again.
func backOff(ctx context.Context, attempt int) error {
	longest := min(time.Millisecond<<min(attempt, 8), 250*time.Millisecond)
	return backoff.Sleep(ctx, rand.N(longest))
}

// Put writes a key, as JSON.
func (tx *Tx) Put(key string, doc any) error { return tx.putLeased(key, doc, 0) }

// PutLeased writes a key that vanishes with the session.
func (tx *Tx) PutLeased(key string, doc any, s *Session) error {
	return tx.putLeased(key, doc, s.lease.ID())
}

func (tx *Tx) putLeased(key string, doc any, lease store.LeaseID) error {
	tx.checkOpen()
	value, err := Encode(key, doc)
	if err == nil {
		tx.buffer.writes[key] = store.Op{Key: key, Value: value, Lease: lease}
	}
	return err
}

// Remove deletes a key, if it is there.
func (tx *Tx) Remove(key string) {
	tx.checkOpen()
	tx.buffer.writes[key] = store.Op{Key: key, Delete: true}
}

// NextNumber counts from 0. A number is never given twice, whatever happens to what it
// counted.
func (tx *Tx) NextNumber(counter string) (int, error) {
	n, _, err := Load[int](tx, counter)
	if err != nil {
		return 0, err
	}
	return n, tx.Put(counter, n+1)
}

// Writes returns what was changed so far, by key: whoever commits it need not read it again.
// What was written as it had been read is none.
func (tx *Tx) Writes() (changes []Change) {
	tx.checkOpen()
	for _, key := range slices.Sorted(maps.Keys(tx.buffer.writes)) {
		op := tx.buffer.writes[key]
		if tx.buffer.isNoop(op) {
			continue
		}
		changes = append(changes, Change{KeyValue: KeyValue{Key: key, Value: op.Value}, Deleted: op.Delete})
	}
	return changes
}
