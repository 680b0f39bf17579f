package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"bijou/state/store"
)

// pending is what one run of an Update has read and is going to write.
type pending struct {
	reads  map[string]store.KV   // Revision 0: the key is absent
	lists  map[string][]store.KV // by prefix
	writes map[string]store.Op
	blobs  map[string][]byte // by sum: to be in the store before the commit
	fence  store.Cond        // of a claim; without a key there is none
}

func newPending() *pending {
	return &pending{
		reads:  map[string]store.KV{},
		lists:  map[string][]store.KV{},
		writes: map[string]store.Op{},
		blobs:  map[string][]byte{},
	}
}

// get reads a key once, and remembers it.
func (p *pending) get(v *View, key string) (store.KV, error) {
	if kv, ok := p.known(key); ok {
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

// known is what was read of the key already, alone or in a list.
func (p *pending) known(key string) (store.KV, bool) {
	if kv, ok := p.reads[key]; ok {
		return kv, true
	}
	prefix, ok := below(key, p.lists)
	if !ok {
		return store.KV{}, false
	}
	i, found := slices.BinarySearchFunc(p.lists[prefix], key, compareKey)
	if !found {
		return store.KV{Key: key}, true
	}
	return p.lists[prefix][i], true
}

func compareKey(kv store.KV, key string) int { return cmp.Compare(kv.Key, key) }

// list reads a prefix once, and remembers it.
func (p *pending) list(v *View, prefix string) ([]store.KV, error) {
	if kvs, ok := p.lists[prefix]; ok {
		return kvs, nil
	}
	kvs, err := v.snap.List(v.ctx, prefix)
	if err == nil {
		p.lists[prefix] = kvs
	}
	return kvs, err
}

// overlay applies own writes to what the snapshot lists.
func (p *pending) overlay(kvs []store.KV, prefix string) []store.KV {
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

// txn is the transaction: conditional on all that was read, without writes that
// change nothing. Its Ops are empty if nothing is to be written.
func (p *pending) txn(revision int64) store.Txn {
	var t store.Txn
	for _, key := range slices.Sorted(maps.Keys(p.writes)) {
		if op := p.writes[key]; !p.same(op) {
			t.Ops = append(t.Ops, op)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.reads)) {
		if _, covered := below(key, p.lists); !covered {
			t.Conds = append(t.Conds, store.Cond{Key: key, Revision: p.reads[key].Revision})
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(p.lists)) {
		t.Conds = append(t.Conds, store.Cond{Prefix: prefix, Revision: revision})
	}
	return t
}

// same says if the write would leave the key as it was read.
func (p *pending) same(op store.Op) bool {
	kv, ok := p.known(op.Key)
	switch {
	case !ok || op.Lease != 0:
		return false
	case op.Delete:
		return kv.Revision == 0
	}
	return kv.Revision != 0 && bytes.Equal(kv.Value, op.Value)
}

// size is how much is going to be written, in bytes.
func (p *pending) size() (n int) {
	for _, op := range p.writes {
		n += len(op.Key) + len(op.Value)
	}
	return n
}
