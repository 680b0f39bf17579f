package keyspace

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"bijou/state/carry"
	"bijou/state/store"
)

// txBuffer holds the reads and the pending writes of one run of an Update.
type txBuffer struct {
	reads  map[string]store.KV   // by key; the Revision of an absent key is 0
	lists  map[string][]store.KV // by prefix
	writes map[string]store.Op   // by key
	blobs  map[string][]byte     // blobs that the commit refers to, by sum; nil if already stored
	fence  store.Cond            // the condition that a claim is held; its Key is empty without a claim

	assumed  map[string]bool // sums of blobs that a DryRun assumes to be stored
	memory   *memory
	recalled map[string]bool // keys whose values came from memory, and not from the store
}

// memory caches a space's own keys, as updates last read or wrote them. The cache is safe because each commit
// is conditional on the values that its update used: if a cached value is outdated, the commit fails, and the
// value is dropped. The whole cache is dropped if an older copy may have replaced the store, since the copy
// uses the same revisions for different values.
type memory struct {
	kvs   sync.Map     // store.KV by key
	added atomic.Int64 // how many keys were added; keys that were dropped still count
}

// maxRemembered is how many keys are added to a memory before it is emptied. A key uses about 300 bytes.
const maxRemembered = 50_000

// newTxBuffer returns an empty buffer for one run. The run can take the values of keys from m.
func newTxBuffer(m *memory) *txBuffer {
	return &txBuffer{
		reads:    map[string]store.KV{},
		lists:    map[string][]store.KV{},
		writes:   map[string]store.Op{},
		blobs:    map[string][]byte{},
		assumed:  map[string]bool{},
		memory:   m,
		recalled: map[string]bool{},
	}
}

// get returns a key's value from the transaction's earlier reads, the process's memory, or the store. It records
// the read, so that the commit becomes conditional on the key. The Revision of an absent key is 0.
func (b *txBuffer) get(v *View, key string) (store.KV, error) {
	if kv, ok := b.cachedRead(key); ok {
		return kv, nil
	}

	kv, ok := b.memory.recall(key)
	if ok {
		b.recalled[key] = true
	} else {
		var err error
		if kv, ok, err = v.snap.Get(v.ctx, key); err != nil {
			return store.KV{}, err
		}
	}
	if !ok {
		kv = store.KV{Key: key}
	}
	b.reads[key] = kv
	return kv, nil
}

// errUnconfirmed makes [Space.rerun] run the update again, with values from the store. A run returns
// errUnconfirmed if it used values from memory, but no commit confirms that these values are still current.
// Before that, the run calls forgetRecalled.
var errUnconfirmed = errors.New("recalled keys must be read again")

// recall returns the cached value of a key. It returns ok false if the key is not cached.
func (m *memory) recall(key string) (kv store.KV, ok bool) {
	value, ok := m.kvs.Load(key)
	if ok {
		kv = value.(store.KV)
	}
	return kv, ok
}

// keep stores a value in the memory. If the memory is then too full, the space gets a new, empty memory.
func (s *Space) keep(m *memory, kv store.KV) {
	_, wasCached := m.kvs.Swap(kv.Key, kv)
	if !wasCached && m.added.Add(1) > maxRemembered {
		s.memory.CompareAndSwap(m, &memory{})
	}
}

// remember stores the process's own keys in memory, as they are after a commit, for later transactions. It
// drops all other keys that the run took from memory, where [View.Keep] has stored them for one update. ops are
// the writes that were committed at revision.
func (s *Space) remember(b *txBuffer, ops []store.Op, revision int64) {
	// The writes replace the reads of the same keys.
	for _, op := range ops {
		if op.Delete {
			b.reads[op.Key] = store.KV{} // revision 0: the key is absent
		} else {
			b.reads[op.Key] = store.KV{Key: op.Key, Value: op.Value, Revision: revision}
		}
	}

	for key, kv := range b.reads {
		switch {
		case s.isOwn == nil || !s.isOwn(key):
			// Other processes may also write this key.
			if b.recalled[key] {
				b.memory.kvs.Delete(key)
			}
		case kv.Revision == 0:
			b.memory.kvs.Delete(key)
		default:
			s.keep(b.memory, kv)
		}
	}
}

// forgetAllIfHistoryLost empties the space's memory if err is ErrHistoryLost, since an older copy may then have
// replaced the store.
func (s *Space) forgetAllIfHistoryLost(err error) {
	if errors.Is(err, store.ErrHistoryLost) {
		s.memory.Store(&memory{})
	}
}

// forgetRecalled drops the values that this run took from memory, so that the next run reads them from the
// store. It returns false if there were none. In that case, the store has confirmed all reads of this run.
func (b *txBuffer) forgetRecalled() bool {
	for key := range b.recalled {
		b.memory.kvs.Delete(key)
	}
	return len(b.recalled) > 0
}

// cachedRead returns the key's value if the transaction has read the key, or listed a prefix of it. Otherwise it
// returns false. The Revision of an absent key is 0.
func (b *txBuffer) cachedRead(key string) (store.KV, bool) {
	if kv, ok := b.reads[key]; ok {
		return kv, true
	}

	prefix, ok := coveringPrefix(key, b.lists)
	if !ok {
		return store.KV{}, false
	}

	i, found := slices.BinarySearchFunc(b.lists[prefix], key, CompareKey)
	if !found {
		return store.KV{Key: key}, true
	}

	return b.lists[prefix][i], true
}

// current returns the value that the transaction has written to the key. If it has not written the key, current
// returns the value that it has read. The result is nil if the key is absent, or was neither written nor read.
func (b *txBuffer) current(key string) []byte {
	if op, written := b.writes[key]; written {
		return op.Value
	}
	kv, _ := b.cachedRead(key)
	return kv.Value
}

// CompareKey compares an entry's key with key, for a binary search in the result of List.
func CompareKey(kv store.KV, key string) int { return cmp.Compare(kv.Key, key) }

// list returns the keys below a prefix as the store has them. It reads each prefix from the store only once.
func (b *txBuffer) list(v *View, prefix string) ([]store.KV, error) {
	if kvs, ok := b.lists[prefix]; ok {
		return kvs, nil
	}
	kvs, err := v.snap.List(v.ctx, prefix)
	if err != nil {
		return kvs, err
	}

	b.lists[prefix] = kvs
	return kvs, nil
}

// overlayWrites returns the listed keys as they are after the transaction's own writes.
func (b *txBuffer) overlayWrites(kvs []store.KV, prefix string) []store.KV {
	if len(b.writes) == 0 {
		return kvs
	}

	merged := slices.DeleteFunc(slices.Clone(kvs), func(kv store.KV) bool {
		_, written := b.writes[kv.Key]
		return written
	})

	for key, op := range b.writes {
		if !op.Delete && strings.HasPrefix(key, prefix) {
			merged = append(merged, store.KV{Key: key, Value: op.Value}) // without a revision before the commit
		}
	}

	slices.SortFunc(merged, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return merged
}

// buildTxn returns a transaction with the run's writes, conditional on the recorded reads and lists. It leaves out
// writes that change nothing. The lists were read at listRevision.
func (b *txBuffer) buildTxn(listRevision int64) store.Txn {
	var t store.Txn
	for _, key := range slices.Sorted(maps.Keys(b.writes)) {
		if op := b.writes[key]; !b.isNoop(op) {
			t.Ops = append(t.Ops, op)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(b.reads)) {
		// The condition on a list also covers its keys. But a value from memory may be older than the list.
		_, isListed := coveringPrefix(key, b.lists)
		if !isListed || b.recalled[key] {
			t.Conds = append(t.Conds, store.Cond{Key: key, Revision: b.reads[key].Revision})
		}
	}

	for _, prefix := range slices.Sorted(maps.Keys(b.lists)) {
		t.Conds = append(t.Conds, store.Cond{Prefix: prefix, Revision: listRevision})
	}

	return t
}

// isNoop reports whether the write would leave the key as it was read.
func (b *txBuffer) isNoop(op store.Op) bool {
	kv, ok := b.cachedRead(op.Key)
	switch {
	// An unread key may have any value. A write under a lease also binds the key to the lease.
	case !ok || op.Lease != 0:
		return false
	case op.Delete:
		return kv.Revision == 0
	}

	return kv.Revision != 0 && carry.Same(kv.Value, op.Value)
}

// WrittenBytes returns how many bytes of keys and values the transaction has written so far.
func (tx *Tx) WrittenBytes() (n int) {
	for _, op := range tx.buffer.writes {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

// coveringPrefix returns one of the prefixes with which the key begins. It returns ok false if there is none.
func coveringPrefix(key string, prefixes map[string][]store.KV) (prefix string, ok bool) {
	for p := range prefixes {
		if strings.HasPrefix(key, p) {
			return p, true
		}
	}
	return "", false
}

// PutIf writes doc to the key on condition that the key guard was last written at revision, which comes from
// [View.GetKV]. It makes a single request to the store. It returns written false if guard has changed.
func (s *Space) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written bool, err error) {
	writtenAt, err := s.putIf(ctx, []store.Cond{{Key: guard, Revision: revision}}, key, doc)
	return writtenAt != 0, err
}

// putIf writes doc to the key if all conditions hold. It returns the revision of the write, or 0 if a
// condition does not hold.
func (s *Space) putIf(ctx context.Context, conds []store.Cond, key string, doc any) (revision int64, err error) {
	value, err := Encode(key, doc)
	if err != nil {
		return 0, err
	}
	revision, err = s.store.Commit(ctx, store.Txn{Conds: conds, Ops: []store.Op{{Key: key, Value: value}}})
	if errors.Is(err, store.ErrConflict) {
		return 0, nil
	}

	return revision, err
}

// PutIf does what Space.PutIf does, under the additional condition that the claim is held. If it returns
// written false, the caller can find out with Update whether the claim was lost.
func (c *Claim) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written bool, err error) {
	writtenAt, err := c.space.putIf(ctx, []store.Cond{c.fenceCond(), {Key: guard, Revision: revision}}, key, doc)
	return writtenAt != 0, err
}

// PutIf does what Space.PutIf does, under the additional condition that this leadership lasts. It returns the
// revision of the write, or 0 if nothing was written. In that case the caller can find out with Update
// whether the leadership has ended. Only one goroutine at a time may call PutIf, since PutIf caches the
// revision of the leader's key.
func (l *Leadership) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written int64, err error) {
	if l.revision == 0 {
		l.revision, err = l.readRevision(ctx)
		if err != nil {
			return 0, err
		}
		if l.revision == 0 {
			return 0, nil
		}
	}

	conds := []store.Cond{{Key: l.key, Revision: l.revision}, {Key: guard, Revision: revision}}
	return l.session.space.putIf(ctx, conds, key, doc)
}

// readRevision returns the revision at which the session wrote the leader's key, or 0 if the session does not
// lead.
func (l *Leadership) readRevision(ctx context.Context) (int64, error) {
	return Read(ctx, l.session.space, func(v *View) (int64, error) {
		kv, err := v.GetKV(l.key)
		if err != nil {
			return 0, err
		}
		if kv.Revision == 0 {
			return 0, nil
		}
		p, err := Decode[Presence](kv)
		if err != nil {
			return 0, err
		}
		if !l.session.Wrote(p) {
			return 0, nil
		}

		return kv.Revision, nil
	})
}
