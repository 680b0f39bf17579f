package storetest

import (
	"context"
	"fmt"
	"strings"

	"bijou/state/store"
)

var commitCases = []testCase{
	{"revisions rise, across openers", revisionsRise},
	{"condition: key is absent", condAbsent},
	{"condition: key is at its revision", condRevision},
	{"one condition of several fails: nothing is written", condAllOrNothing},
	{"conditions without operations", condsOnly},
	{"nothing changed makes no revision", noRevision},
	{"as many conditions and operations as there may be", countLimits},
	{"1 MiB of keys and values", sizeLimit},
	{"all limits at once", allLimits},
	{"a key in two operations is refused", doubledKey},
	{"an empty key is refused", emptyKey},
	{"a commit under an ended context", commitCancelled},
	{"a quiet put writes like any other", quietPut},
}

func revisionsRise(f *fixture) {
	both, last := []handle{f.handle, f.share()}, f.revision()
	for i := range 10 {
		next := both[i%2].write(put("a", "1"))
		if next <= last {
			f.Fatalf("revision %d comes after %d", next, last)
		}
		last = next
	}
	f.equal(f.revision(), last)
}

func condAbsent(f *fixture) {
	create := store.Txn{Conds: []store.Cond{{Key: "a"}}, Ops: []store.Op{put("a", "1")}}
	f.commit(create)
	f.refused(store.ErrConflict, create)
	f.write(del("a"))
	f.commit(create)
}

func condRevision(f *fixture) {
	first := f.write(put("a", "1"))
	update := store.Txn{Conds: []store.Cond{{Key: "a", Revision: first}}, Ops: []store.Op{put("a", "2")}}
	second := f.commit(update)
	f.refused(store.ErrConflict, update)

	update.Conds[0].Revision = second
	f.write(put("other", "1"))
	f.commit(update)

	f.write(del("a"))
	f.refused(store.ErrConflict, update)
	f.write(put("a", "2"))
	f.refused(store.ErrConflict, update)
	f.has("a", "a", "2")
}

func condAllOrNothing(f *fixture) {
	a := f.write(put("a", "1"))
	before := f.revision()
	f.refused(store.ErrConflict, store.Txn{
		Conds: []store.Cond{{Key: "a", Revision: a}, {Key: "none", Revision: 1}},
		Ops:   []store.Op{put("a", "2"), put("b", "2")},
	})
	f.has("", "a", "1")
	f.equal(f.revision(), before)
}

func condsOnly(f *fixture) {
	a := f.write(put("a", "1"))
	newest := f.write(put("b", "1"))
	f.equal(f.commit(store.Txn{Conds: []store.Cond{{Key: "a", Revision: a}}}), newest)
	f.refused(store.ErrConflict, store.Txn{Conds: []store.Cond{{Key: "a"}}})
	f.equal(f.revision(), newest)
}

func noRevision(f *fixture) {
	newest := f.write(put("a", "1"))
	f.equal(f.commit(store.Txn{}), newest)
	f.equal(f.write(del("none"), del("nor this")), newest)
	if f.write(del("none"), put("b", "1")) <= newest {
		f.Fatal("a put beside the deletion of an absent key made no revision")
	}
}

func countLimits(f *fixture) {
	var txn store.Txn
	for i := range store.MaxOps {
		key := fmt.Sprintf("k/%03d", i)
		txn.Conds = append(txn.Conds, store.Cond{Key: key})
		txn.Ops = append(txn.Ops, put(key, "1"))
	}
	conds := store.Txn{Conds: append(txn.Conds[:store.MaxConds:store.MaxConds], store.Cond{Key: "x"}), Ops: txn.Ops}
	f.refused(store.ErrTooLarge, conds)
	ops := store.Txn{Conds: txn.Conds, Ops: append(txn.Ops[:store.MaxOps:store.MaxOps], put("x", "1"))}
	f.refused(store.ErrTooLarge, ops)
	f.has("")

	revision := f.commit(txn)
	kvs, err := f.snapshot().List(f.ctx, "k/")
	f.ok(err)
	f.equal(len(kvs), store.MaxOps)
	for _, kv := range kvs {
		f.equal(kv.Revision, revision)
	}

	for i := range txn.Ops {
		txn.Conds[i].Revision, txn.Ops[i] = revision, del(txn.Ops[i].Key)
	}
	f.commit(txn)
	f.has("")
}

func sizeLimit(f *fixture) {
	value := strings.Repeat("v", store.MaxBytes-len("a"))
	f.refused(store.ErrTooLarge, store.Txn{Ops: []store.Op{put("a", value+"v")}})
	half := value[:store.MaxBytes/2]
	f.refused(store.ErrTooLarge, store.Txn{Ops: []store.Op{put("a", half), put("b", half)}})
	f.has("")
	f.write(put("a", value))
	f.value("a", []byte(value))
}

// allLimits commits as many of the most expensive conditions and operations as the limits allow.
func allLimits(f *fixture) {
	l := f.lease(longTTL)
	var txn store.Txn
	base := f.revision()
	for i := range store.MaxConds {
		txn.Conds = append(txn.Conds, store.Cond{Prefix: fmt.Sprintf("p/%03d/", i), Revision: base})
	}
	for i := range store.MaxOps {
		key := fmt.Sprintf("k/%03d", i)
		txn.Ops = append(txn.Ops, under(l, key, strings.Repeat("v", store.MaxBytes/store.MaxOps-len(key))))
	}
	f.commit(txn)
	f.write(put("p/300/x", "1"))
	f.refused(store.ErrConflict, txn)
	f.ok(l.Close(f.ctx))
	f.has("k/")
}

func doubledKey(f *fixture) {
	f.write(put("a", "1"))
	for _, ops := range [][]store.Op{
		{put("a", "2"), put("a", "3")},
		{del("a"), put("a", "3")},
		{put("b", "2"), del("a"), del("a")},
	} {
		if _, err := f.s.Commit(f.ctx, store.Txn{Ops: ops}); err == nil {
			f.Fatalf("operations %v were committed", ops)
		}
	}
	f.has("", "a", "1")
}

func emptyKey(f *fixture) {
	if _, err := f.s.Commit(f.ctx, store.Txn{Ops: []store.Op{put("a", "1"), put("", "1")}}); err == nil {
		f.Fatal("an empty key was put")
	}
	f.has("")
}

func commitCancelled(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.s.Commit(ctx, store.Txn{Ops: []store.Op{put("a", "1")}})
	f.is(err, context.Canceled)
	f.write(put("a", "2"))
	f.has("", "a", "2")
}

func quietPut(f *fixture) {
	op := put("a", "1")
	op.Quiet = true
	txn := store.Txn{Conds: []store.Cond{{Key: "a"}}, Ops: []store.Op{op}}
	before := f.revision()
	revision := f.commit(txn)
	if revision <= before {
		f.Fatal("a quiet put made no revision")
	}
	f.equal(f.get(f.snapshot(), "a").Revision, revision)
	f.refused(store.ErrConflict, txn)
	txn.Conds[0].Revision = revision
	f.commit(txn)
}
