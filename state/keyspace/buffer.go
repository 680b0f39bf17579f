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

// txBuffer holds what one run of an Update has read and is going to write.
type txBuffer struct {
	reads  map[string]store.KV   // Revision 0: the key is absent
	lists  map[string][]store.KV // by prefix
	writes map[string]store.Op
	blobs  map[string][]byte // by sum: to be in the store before the commit
	fence  store.Cond        // of a claim; without a key there is none

	assumed  map[string]bool // sums of blobs that a DryRun takes to be there
	memory   *memory
	recalled map[string]bool // reads that are from it
}

// memory has own keys of a space, as updates have read or written them last. That they are not read again is
// safe, as each commit is conditional on what it has read: what is older than the store is then forgotten.
// All of it is, once an older copy of the store may have taken its place, where revisions repeat.
type memory struct {
	kvs   sync.Map // store.KV by key
	added atomic.Int64
}

// maxRemembered keys, of some 300 bytes each, are added before all are forgotten.
const maxRemembered = 50_000

// get returns a key's value: the transaction's own read, the process's memory, or the store's.
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

// errRecalled: what a run of an update has come to rests on what was recalled, and no commit has shown that
// it is so. It runs again, and reads.
var errRecalled = errors.New("keys must be read again")

func (m *memory) recall(key string) (kv store.KV, ok bool) {
	value, ok := m.kvs.Load(key)
	if ok {
		kv = value.(store.KV)
	}
	return kv, ok
}

// remember keeps, for later transactions, the process's own keys as they are after a commit. ops are the
// writes that were committed at revision.
func (s *Space) remember(b *txBuffer, ops []store.Op, revision int64) {
	for _, op := range ops { // what was read of these is outdated
		if op.Delete {
			b.reads[op.Key] = store.KV{}
		} else {
			b.reads[op.Key] = store.KV{Key: op.Key, Value: op.Value, Revision: revision}
		}
	}

	for key, kv := range b.reads {
		switch {
		case s.isOwn == nil || !s.isOwn(key):
			// Others may write this key, too.
		case kv.Revision == 0:
			b.memory.kvs.Delete(key)
		default:
			if _, had := b.memory.kvs.Swap(key, kv); !had && b.memory.added.Add(1) > maxRemembered {
				s.memory.CompareAndSwap(b.memory, &memory{})
			}
		}
	}
}

func (s *Space) forgetAllIfLost(err error) {
	if errors.Is(err, store.ErrHistoryLost) {
		s.memory.Store(&memory{})
	}
}

// forget returns err, or errRecalled if anything that was read was recalled.
func (b *txBuffer) forget(err error) error {
	for key := range b.recalled {
		b.memory.kvs.Delete(key)
		err = errRecalled
	}
	return err
}

// cachedRead returns the key's value if the transaction has read the key, or listed a prefix of it.
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

// current returns a key's value as far as the transaction knows it: the one that it has written, or else
// read. It is nil if the key is absent, or was not read.
func (b *txBuffer) current(key string) []byte {
	if op, written := b.writes[key]; written {
		return op.Value
	}
	kv, _ := b.cachedRead(key)
	return kv.Value
}

// CompareKey compares an entry's key with key, for a binary search in the result of List.
func CompareKey(kv store.KV, key string) int { return cmp.Compare(kv.Key, key) }

// list returns the keys below a prefix, and lists each prefix once.
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

	out := slices.DeleteFunc(slices.Clone(kvs), func(kv store.KV) bool {
		_, written := b.writes[kv.Key]
		return written
	})

	for key, op := range b.writes {
		if !op.Delete && strings.HasPrefix(key, prefix) {
			out = append(out, store.KV{Key: key, Value: op.Value})
		}
	}

	slices.SortFunc(out, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// buildTxn makes the transaction conditional on everything that was read. It leaves out writes that change
// nothing.
func (b *txBuffer) buildTxn(revision int64) store.Txn {
	var t store.Txn
	for _, key := range slices.Sorted(maps.Keys(b.writes)) {
		if op := b.writes[key]; !b.isNoop(op) {
			t.Ops = append(t.Ops, op)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(b.reads)) {
		if _, covered := coveringPrefix(key, b.lists); !covered || b.recalled[key] {
			t.Conds = append(t.Conds, store.Cond{Key: key, Revision: b.reads[key].Revision})
		}
	}

	for _, prefix := range slices.Sorted(maps.Keys(b.lists)) {
		t.Conds = append(t.Conds, store.Cond{Prefix: prefix, Revision: revision})
	}
	return t
}

// isNoop reports whether the write would leave the key as it was read.
func (b *txBuffer) isNoop(op store.Op) bool {
	kv, ok := b.cachedRead(op.Key)
	switch {
	case !ok || op.Lease != 0:
		return false
	case op.Delete:
		return kv.Revision == 0
	}

	return kv.Revision != 0 && carry.Same(kv.Value, op.Value)
}

// WrittenBytes returns how many bytes of keys and values were written so far.
func (tx *Tx) WrittenBytes() (n int) {
	for _, op := range tx.buffer.writes {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

// coveringPrefix returns a prefix of the key among those whose keys were listed; any one will do.
func coveringPrefix(key string, prefixes map[string][]store.KV) (prefix string, ok bool) {
	for p := range prefixes {
		if strings.HasPrefix(key, p) {
			return p, true
		}
	}
	return "", false
}

// PutIf writes the key unless guard was written since that revision (View.GetKV), in one
// request to the store; written is false if it was.
func (s *Space) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written bool, err error) {
	at, err := s.putIf(ctx, []store.Cond{{Key: guard, Revision: revision}}, key, doc)
	return at != 0, err
}

// putIf returns the revision at which the key was written; 0 if a condition did not hold.
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

// PutIf does what Space.PutIf does, under the additional condition that the claim is held. If nothing was
// written, Update tells whether the claim was lost.
func (c *Claim) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written bool, err error) {
	at, err := c.space.putIf(ctx, []store.Cond{c.fenceCond(), {Key: guard, Revision: revision}}, key, doc)
	return at != 0, err
}

// PutIf does what Space.PutIf does, under the additional condition that this leadership lasts. It returns the
// revision of the write, or 0 if nothing was written. Then Update tells whether the leadership has ended. It
// is for one goroutine at a time.
func (l *Leadership) PutIf(
	ctx context.Context,
	guard string,
	revision int64,
	key string,
	doc any,
) (written int64, err error) {
	if l.revision == 0 {
		l.revision, err = l.readRevision(ctx)
		if err != nil || l.revision == 0 {
			return 0, err
		}
	}

	return l.session.space.putIf(ctx,
		[]store.Cond{{Key: l.key, Revision: l.revision}, {Key: guard, Revision: revision}}, key, doc)
}

// readRevision returns the revision at which the session wrote the leader's key; 0 if a different session
// leads.
func (l *Leadership) readRevision(ctx context.Context) (int64, error) {
	return Read(ctx, l.session.space, func(v *View) (int64, error) {
		kv, err := v.GetKV(l.key)
		if err != nil || kv.Revision == 0 {
			return 0, err
		}
		p, err := Decode[Presence](kv)
		if err != nil || !l.session.Wrote(p) {
			return 0, err
		}

		return kv.Revision, nil
	})
}
