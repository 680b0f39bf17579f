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

// Tx is one run of an Update. It is a View whose reads see the run's own writes, and become conditions of the
// commit.
type Tx struct{ *View }

// Update calls f, and commits its writes as one transaction. The commit is conditional on every key and
// prefix that f has read, except reads by methods that add no condition, such as [View.GetKV]. Update runs f
// again from the start if such a key or prefix has changed since then, if the store no longer has the revision
// that f reads at, or if a value from the process's memory may be outdated. So f must act only on tx, and on
// results that a rerun overwrites. If f returns an error, Update returns it and writes nothing. If f changes
// nothing, there is no commit. ctx limits all attempts together.
//
// Update returns ErrTooLarge if f's reads and writes do not fit in one transaction (512 conditions, 512
// operations, 1 MiB). If the commit fails with an error that this package does not define, f's writes may or
// may not have been committed.
func (s *Space) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.rerun(ctx, func() error {
		return s.runOnce(ctx, f, func(b *txBuffer, listRevision int64) error {
			return s.commit(ctx, b, listRevision)
		})
	})
}

// rerun calls run again after a conflict with other writes, after a loss of the snapshot's revision, and
// after errUnconfirmed. Otherwise it returns run's error, or ErrSessionLost if the session's lease has ended.
// If ctx ends during the repetitions, the error says how many attempts were made.
func (s *Space) rerun(ctx context.Context, run func() error) error {
	for attempt := 0; ; attempt++ {
		err := run()
		s.forgetAllIfHistoryLost(err)

		switch {
		case errors.Is(err, errUnconfirmed):
			// There was no conflict, so there is nothing to wait for.
			continue
		case errors.Is(err, store.ErrLeaseLost):
			return fmt.Errorf("%w: %w", ErrSessionLost, err)
		case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrHistoryLost):
			return err
		}

		if err := backOff(ctx, attempt); err != nil {
			return fmt.Errorf("cannot update: gave up after %d attempts, because of conflicting writes: %w", attempt+1, err)
		}
	}
}

// runOnce runs f, and passes its reads and writes to finish. listRevision is the revision at which f's lists
// were read, or 0 if there are none. runOnce returns the error of f, of a read of the store, or of finish. It
// returns errUnconfirmed instead of f's error if f had values from memory, and no read of the store has failed.
func (s *Space) runOnce(
	ctx context.Context,
	f func(tx *Tx) error,
	finish func(b *txBuffer, listRevision int64) error,
) error {
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}

	reader := &failingSnapshot{Snapshot: snap}
	v := &View{ctx: ctx, snap: reader, buffer: newTxBuffer(s.memory.Load()), space: s}
	defer v.close()
	defer s.reportSkipped(v)

	if err := f(&Tx{v}); err != nil {
		// Unless a read has failed, an outdated value from memory may be the cause.
		if reader.err == nil && v.buffer.forgetRecalled() {
			return errUnconfirmed
		}
		return err
	}

	// f may have ignored the error of a read.
	if reader.err != nil {
		return reader.err
	}

	listRevision := int64(0)
	if len(v.buffer.lists) > 0 {
		if listRevision, err = snap.Revision(ctx); err != nil {
			return err
		}
	}

	// The commit needs no snapshot.
	v.close()
	return finish(v.buffer, listRevision)
}

// commit writes the blobs that the transaction refers to, and then commits the transaction. The run has read
// its lists at listRevision. commit returns errUnconfirmed if the run must be repeated because values from
// memory may be outdated. After a conflict it returns [store.ErrConflict], or the error of checkGuards if
// each further run would have the same conflict.
func (s *Space) commit(ctx context.Context, b *txBuffer, listRevision int64) error {
	t := b.buildTxn(listRevision)
	if len(t.Ops) == 0 {
		// An outdated value from memory may be why the run changed nothing.
		if b.forgetRecalled() {
			return errUnconfirmed
		}
		return nil
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
		return nil
	case errors.Is(err, store.ErrConflict):
		// A value from memory may be outdated, so the rerun must read it from the store.
		b.forgetRecalled()
		// While a guard's key exists, or after the claim's key has changed, no rerun can commit.
		if guardErr := s.checkGuards(ctx, b); guardErr != nil {
			return guardErr
		}
		return err
	case errors.Is(err, store.ErrTooLarge):
		// An outdated value from memory can make the transaction too large.
		if b.forgetRecalled() {
			return errUnconfirmed
		}
		return fmt.Errorf("cannot update: the caller must split the update into batches: %w", err)
	}

	return err
}

// backOff waits after a conflict, longer each time, up to a quarter of a second. The time is random, so that
// processes that conflicted once do not conflict again.
func backOff(ctx context.Context, attempt int) error {
	longest := min(time.Millisecond<<min(attempt, 8), 250*time.Millisecond)
	return backoff.Sleep(ctx, rand.N(longest))
}

// Put writes doc to a key, as JSON. If the transaction has read the key, Put keeps those members of the old
// value that doc's type does not know, since a newer binary has written them; see package carry. After a
// Remove of the key in the same transaction, Put does not keep these members.
func (tx *Tx) Put(key string, doc any) error {
	tx.checkOpen()
	value, err := Encode(key, doc)
	if err != nil {
		return err
	}

	tx.buffer.writes[key] = store.Op{Key: key, Value: carry.Over(tx.buffer.current(key), value, doc)}
	return nil
}

// PutLeased writes a key that vanishes when the session ends. Unlike Put it keeps no unknown members of the old
// value, since only the session's process writes the key.
func (tx *Tx) PutLeased(key string, doc any, s *Session) error {
	tx.checkOpen()
	value, err := Encode(key, doc)
	if err != nil {
		return err
	}

	tx.buffer.writes[key] = store.Op{Key: key, Value: value, Lease: s.lease.ID()}
	return nil
}

// Remove deletes the keys. A key can be absent.
func (tx *Tx) Remove(keys ...string) {
	tx.checkOpen()
	for _, key := range keys {
		tx.buffer.writes[key] = store.Op{Key: key, Delete: true}
	}
}

// PutOrRemove writes the key if keep is true. Otherwise it deletes the key.
func (tx *Tx) PutOrRemove(key string, doc any, keep bool) error {
	if keep {
		return tx.Put(key, doc)
	}
	tx.Remove(key)
	return nil
}

// NextNumber returns the next number of the counter at the key counter, beginning with 0, and increments the
// counter. It never returns a number twice, even if the entity with that number is removed.
func (tx *Tx) NextNumber(counter string) (int, error) {
	n, _, err := Load[int](tx, counter)
	if err != nil {
		return 0, err
	}
	return n, tx.Put(counter, n+1)
}

// Writes returns the changes so far, by key, so that the caller need not read them again after the commit.
// A write that leaves the key as the transaction has read it is not a change, except by PutLeased.
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

// guardConds returns the conditions of a commit besides those on its reads: the keys of the guards that apply to
// the commit must be absent, and a claim under which the transaction runs must not have changed.
func (s *Space) guardConds(b *txBuffer) (conds []store.Cond) {
	if b.fence.Key != "" {
		conds = append(conds, b.fence)
	}
	for _, g := range s.guards {
		if g.appliesTo(b) {
			// A condition without a revision means that the key is absent.
			conds = append(conds, store.Cond{Key: g.Key})
		}
	}

	return conds
}

// appliesTo reports whether the guard applies to the commit. It does not apply if the transaction has read the
// guard's key, since the caller then knows it.
func (g Guard) appliesTo(b *txBuffer) bool {
	_, isRead := b.cachedRead(g.Key)
	return !isRead && (!g.Leased || b.hasLeasedWrite())
}

// hasLeasedWrite reports whether the transaction writes a key under a session.
func (b *txBuffer) hasLeasedWrite() bool {
	for _, op := range b.writes {
		if op.Lease != 0 {
			return true
		}
	}
	return false
}

// checkGuards reads the claim, and the keys of the guards that apply to the commit. It returns errClaimChanged if
// the claim under which the transaction runs has changed, or the error of the first such guard whose key exists.
// It returns nil if neither would stop a commit.
func (s *Space) checkGuards(ctx context.Context, b *txBuffer) error {
	return s.View(ctx, func(v *View) error {
		if err := b.checkFence(v); err != nil {
			return err
		}

		for _, g := range s.guards {
			if !g.appliesTo(b) {
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

// errClaimChanged is returned if the claim was written since the update began.
var errClaimChanged = errors.New("the claim has changed")

// checkFence returns errClaimChanged if the claim under which the transaction runs has changed.
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

	// The list is a condition of the commit, so the number of remaining keys is exact.
	for i, kv := range kvs {
		if i == limit {
			return len(kvs) - limit, nil
		}
		tx.Remove(kv.Key)
	}

	return 0, nil
}

// MaxRemovedKeys is how many keys one transaction of a removal removes. It is far below the store's limit,
// which leaves space for the transaction's other operations.
const MaxRemovedKeys = 64

// MaxFewRemoved is how many keys RemoveFew removes below each prefix.
const MaxFewRemoved = 4

// RemoveFew removes the first MaxFewRemoved keys below each of the prefixes. It adds no condition to the
// commit, so that it causes no conflicts.
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

// IsPrefixEmpty reports whether no key begins with the prefix, and makes the commit conditional on the
// answer. If there are keys, the condition is only on the last of them in order. So of a thousand
// transactions that each remove one key, few conflict, and yet the transaction that removes the last key
// finds the prefix empty.
func (tx *Tx) IsPrefixEmpty(prefix string) (bool, error) {
	kvs, err := tx.ListUnguarded(prefix)
	if err != nil {
		return false, err
	}
	if len(kvs) == 0 {
		// This list is a condition of the commit.
		kvs, err = tx.List(prefix)
		return len(kvs) == 0, err
	}

	// Get makes the commit conditional on the key.
	_, _, err = tx.Get(kvs[len(kvs)-1].Key)
	return false, err
}

// RemoveKeys removes keys that nobody writes again. It makes one transaction for each MaxRemovedKeys keys,
// without conditions on the keys.
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
