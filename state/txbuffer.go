package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"bijou/state/store"
)

// txBuffer holds what one run of an Update has read and is going to write.
type txBuffer struct {
	reads  map[string]store.KV   // Revision 0: the key is absent
	lists  map[string][]store.KV // by prefix
	writes map[string]store.Op
	blobs  map[string][]byte // by sum: to be in the store before the commit
	fence  store.Cond        // of a claim; without a key there is none
}

func newTxBuffer() *txBuffer {
	return &txBuffer{
		reads:  map[string]store.KV{},
		lists:  map[string][]store.KV{},
		writes: map[string]store.Op{},
		blobs:  map[string][]byte{},
	}
}

func (p *txBuffer) get(v *View, key string) (store.KV, error) {
	if kv, ok := p.cachedRead(key); ok {
		return kv, nil
	}
	kv, ok, err := v.snap.Get(v.ctx, key)
	if err != nil {
		return store.KV{}, err
	}
	if !ok {
		kv = store.KV{Key: key}
	}
	p.reads[key] = kv
	return kv, nil
}

// cachedRead finds a key that was read alone or in a list.
func (p *txBuffer) cachedRead(key string) (store.KV, bool) {
	if kv, ok := p.reads[key]; ok {
		return kv, true
	}
	prefix, ok := coveringPrefix(key, p.lists)
	if !ok {
		return store.KV{}, false
	}
	i, found := slices.BinarySearchFunc(p.lists[prefix], key, compareKVKey)
	if !found {
		return store.KV{Key: key}, true
	}
	return p.lists[prefix][i], true
}

func compareKVKey(kv store.KV, key string) int { return cmp.Compare(kv.Key, key) }

func (p *txBuffer) list(v *View, prefix string) ([]store.KV, error) {
	if kvs, ok := p.lists[prefix]; ok {
		return kvs, nil
	}
	kvs, err := v.snap.List(v.ctx, prefix)
	if err == nil {
		p.lists[prefix] = kvs
	}
	return kvs, err
}

func (p *txBuffer) overlayWrites(kvs []store.KV, prefix string) []store.KV {
	if len(p.writes) == 0 {
		return kvs
	}
	out := slices.DeleteFunc(slices.Clone(kvs), func(kv store.KV) bool {
		_, written := p.writes[kv.Key]
		return written
	})
	for key, op := range p.writes {
		if !op.Delete && strings.HasPrefix(key, prefix) {
			out = append(out, store.KV{Key: key, Value: op.Value})
		}
	}
	slices.SortFunc(out, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// buildTxn makes the transaction conditional on all that was read, and leaves out writes
// that change nothing.
func (p *txBuffer) buildTxn(revision int64) store.Txn {
	var t store.Txn
	for _, key := range slices.Sorted(maps.Keys(p.writes)) {
		if op := p.writes[key]; !p.isNoop(op) {
			t.Ops = append(t.Ops, op)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.reads)) {
		if _, covered := coveringPrefix(key, p.lists); !covered {
			t.Conds = append(t.Conds, store.Cond{Key: key, Revision: p.reads[key].Revision})
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(p.lists)) {
		t.Conds = append(t.Conds, store.Cond{Prefix: prefix, Revision: revision})
	}
	return t
}

// isNoop reports whether the write would leave the key as it was read.
func (p *txBuffer) isNoop(op store.Op) bool {
	kv, ok := p.cachedRead(op.Key)
	switch {
	case !ok || op.Lease != 0:
		return false
	case op.Delete:
		return kv.Revision == 0
	}
	return kv.Revision != 0 && bytes.Equal(kv.Value, op.Value)
}

func (p *txBuffer) writtenBytes() (n int) {
	for _, op := range p.writes {
		n += len(op.Key) + len(op.Value)
	}
	return n
}

func coveringPrefix(key string, prefixes map[string][]store.KV) (prefix string, ok bool) {
	for p := range prefixes {
		if strings.HasPrefix(key, p) {
			return p, true
		}
	}
	return "", false
}
