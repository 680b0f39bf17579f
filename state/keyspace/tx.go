package keyspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"bijou/state/backoff"
	"bijou/state/carry"
	"bijou/state/metrics"
	"bijou/state/store"
)

// Tx is one run of an Update: a View whose reads see its own writes, and become
// conditions of the commit.
type Tx struct{ *View }

// Update calls f, and commits its writes as one transaction. The commit is conditional on every key and
// prefix that f has read. If one of them has changed meanwhile, or if the store no longer has the revision
// that f reads at, Update runs f again from the start. So f must act only on tx, and on results that a
// rerun overwrites. If f returns an error, Update returns it and writes nothing. If f changes nothing,
// there is no commit. ctx bounds all attempts together.
//
// Update returns ErrTooLarge if f does more than one transaction holds (512 conditions, 512 operations, 1
// MiB). After an error that is not one of this package's, nobody knows whether f's writes were committed.
func (s *Space) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.rerun(ctx, func() error {
		return s.runOnce(ctx, f, func(b *txBuffer, read int64) error { return s.commit(ctx, b, read) })
	})
}

// rerun calls run again until its commit meets no conflict with others' writes.
func (s *Space) rerun(ctx context.Context, run func() error) error {
	for attempt := 0; ; attempt++ {
		err := run()
		s.forgetAllIfLost(err)

		switch {
		case errors.Is(err, errRecalled):
			continue
		case errors.Is(err, store.ErrLeaseLost):
			return fmt.Errorf("%w: %w", ErrSessionLost, err)
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrHistoryLost):
			return err
		}

		if err := backOff(ctx, attempt); err != nil {
			return fmt.Errorf("cannot update: %d conflicts with others: %w", attempt+1, err)
		}
	}
}

// runOnce runs f, and passes its reads and writes to finish, with the revision of its lists (0 if it has
// read none).
func (s *Space) runOnce(ctx context.Context, f func(tx *Tx) error, finish func(b *txBuffer, read int64) error) error {
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}

	reader := &failingSnapshot{Snapshot: snap}
	v := &View{
		ctx:  ctx,
		snap: reader,
		buffer: &txBuffer{
			reads:    map[string]store.KV{},
			lists:    map[string][]store.KV{},
			writes:   map[string]store.Op{},
			blobs:    map[string][]byte{},
			assumed:  map[string]bool{},
			memory:   s.memory.Load(),
			recalled: map[string]bool{},
		},
	}
	defer v.close()
	defer s.reportSkipped(v)

	if err := f(&Tx{v}); err != nil {
		if reader.err == nil {
			err = v.buffer.forget(err)
		}
		return err
	}

	if reader.err != nil { // whoever reads several things may look at one error only
		return reader.err
	}

	revision := int64(0)
	if len(v.buffer.lists) > 0 {
		if revision, err = snap.Revision(ctx); err != nil {
			return err
		}
	}

	v.close()
	return finish(v.buffer, revision)
}

// commit writes the blobs that the transaction refers to, and then commits the transaction.
func (s *Space) commit(ctx context.Context, b *txBuffer, read int64) error {
	t := b.buildTxn(read)
	if len(t.Ops) == 0 {
		return b.forget(nil)
	}

	t.Conds = append(t.Conds, s.guardConds(b)...)
	if err := s.attachBlobs(ctx, &t, b.blobs); err != nil {
		return err
	}

	begun := time.Now()
	revision, err := s.store.Commit(ctx, t)
	s.Metrics.Observe(time.Since(begun), "bijou_store_commit_seconds", "result", metrics.Result(err == nil))

	switch {
	case err == nil:
		s.remember(b, t.Ops, revision)
	case errors.Is(err, store.ErrConflict):
		_ = b.forget(err)
		if why := s.explainConflict(ctx, b); why != nil {
			return why
		}
		return err
	case errors.Is(err, store.ErrTooLarge):
		return b.forget(fmt.Errorf("cannot update: its caller must work in batches: %w", err))
	}

	return err
}

// backOff waits after a conflict, longer each time, up to a quarter of a second. The time is random, so
// that processes that met once do not meet again.
func backOff(ctx context.Context, attempt int) error {
	longest := min(time.Millisecond<<min(attempt, 8), 250*time.Millisecond)
	return backoff.Sleep(ctx, rand.N(longest))
}

// Put writes a key, as JSON. If the transaction has read the key, the members that doc's type does
// not know stay as they are there, as package carry says: a newer binary has written them. After a
// Remove in the same transaction the record is another one, which has none of them.
func (tx *Tx) Put(key string, doc any) error {
	tx.checkOpen()
	value, err := Encode(key, doc)
	if err != nil {
		return err
	}

	tx.buffer.writes[key] = store.Op{Key: key, Value: carry.Over(tx.buffer.current(key), value, doc)}
	return nil
}

// PutLeased writes a key that vanishes with the session. Unlike Put it keeps no unknown fields of an
// earlier record, since only the session's process writes the key.
func (tx *Tx) PutLeased(key string, doc any, s *Session) error {
	tx.checkOpen()
	value, err := Encode(key, doc)
	if err != nil {
		return err
	}

	tx.buffer.writes[key] = store.Op{Key: key, Value: value, Lease: s.lease.ID()}
	return nil
}

// Remove deletes keys, as far as they are there.
func (tx *Tx) Remove(keys ...string) {
	tx.checkOpen()
	for _, key := range keys {
		tx.buffer.writes[key] = store.Op{Key: key, Delete: true}
	}
}

// PutOrRemove writes a key if there is something to keep, and else deletes it.
func (tx *Tx) PutOrRemove(key string, doc any, keep bool) error {
	if keep {
		return tx.Put(key, doc)
	}
	tx.Remove(key)
	return nil
}

// NextNumber returns the numbers 0, 1, 2 and so on. It never returns one twice, even if the entity with
// that number is removed.
func (tx *Tx) NextNumber(counter string) (int, error) {
	n, _, err := Load[int](tx, counter)
	if err != nil {
		return 0, err
	}
	return n, tx.Put(counter, n+1)
}

// Writes returns the changes so far, by key, so that the caller need not read them again after the commit.
// A key that was written with the value that it had is no change.
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

// guardConds returns the conditions that every commit has besides those on its reads. They are the guards,
// and that this process still holds the claim under which it works.
func (s *Space) guardConds(b *txBuffer) (conds []store.Cond) {
	if b.fence.Key != "" {
		conds = append(conds, b.fence)
	}
	for _, g := range s.guards {
		if g.holds(b) {
			conds = append(conds, store.Cond{Key: g.Key})
		}
	}

	return conds
}

func (g Guard) holds(b *txBuffer) bool {
	_, read := b.cachedRead(g.Key)
	return !read && (!g.Leased || b.hasLeasedWrite())
}

func (b *txBuffer) hasLeasedWrite() bool {
	for _, op := range b.writes {
		if op.Lease != 0 {
			return true
		}
	}
	return false
}

// explainConflict returns the reason why a commit with guards has met a conflict; nil if no guard caused
// it.
func (s *Space) explainConflict(ctx context.Context, b *txBuffer) error {
	return s.View(ctx, func(v *View) error {
		if err := b.checkFence(v); err != nil {
			return err
		}

		for _, g := range s.guards {
			if !g.holds(b) {
				continue
			}

			kv, err := v.GetKV(g.Key)
			if err != nil {
				return err
			}
			if kv.Revision != 0 {
				return g.Explain(kv)
			}
		}

		return nil
	})
}

// errClaimChanged: somebody has written the claim since the update began.
var errClaimChanged = errors.New("the claim has changed")

// checkFence returns errClaimChanged if the key that fences this transaction has changed.
func (b *txBuffer) checkFence(v *View) error {
	if b.fence.Key == "" {
		return nil
	}

	kv, err := v.GetKV(b.fence.Key)
	if err != nil {
		return err
	}
	if kv.Revision != b.fence.Revision {
		return errClaimChanged
	}

	return nil
}

// RemoveBelow removes at most limit keys below the prefix, and returns how many are left.
func (tx *Tx) RemoveBelow(prefix string, limit int) (left int, err error) {
	kvs, err := tx.List(prefix)
	if err != nil {
		return 0, err
	}

	for i, kv := range kvs {
		if i == limit {
			return len(kvs) - limit, nil
		}
		tx.Remove(kv.Key)
	}

	return 0, nil
}

// MaxRemovedKeys is how many keys one transaction of a removal removes: few of a transaction, which leaves room for what else is in it.
const MaxRemovedKeys = 64

// MaxFewRemoved is how many left-over keys one removal takes along.
const MaxFewRemoved = 4

// RemoveFew removes a few of the keys below the prefixes, at most MaxFewRemoved of each.
func (tx *Tx) RemoveFew(prefixes ...string) error {
	for _, prefix := range prefixes {
		kvs, err := tx.ListUnguarded(prefix)
		if err != nil {
			return err
		}

		for _, kv := range kvs[:min(MaxFewRemoved, len(kvs))] {
			tx.Remove(kv.Key)
		}
	}

	return nil
}

// IsPrefixEmpty reports whether no key begins with the prefix, and makes the commit conditional on that. If
// there are keys, the condition is on the last one only. So a thousand transactions that each remove one
// key do not conflict with each other, and the last of them still finds out.
func (tx *Tx) IsPrefixEmpty(prefix string) (bool, error) {
	kvs, err := tx.ListUnguarded(prefix)
	if err != nil {
		return false, err
	}
	if len(kvs) == 0 {
		kvs, err = tx.List(prefix)
		return len(kvs) == 0, err
	}

	_, _, err = tx.Get(kvs[len(kvs)-1].Key)
	return false, err
}

// RemoveKeys removes keys that nobody writes again, in batches without conditions.
func (s *Space) RemoveKeys(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, MaxRemovedKeys) {
		err := s.Update(ctx, func(tx *Tx) error {
			tx.Remove(batch...)
			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}
