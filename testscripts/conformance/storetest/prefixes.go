package storetest

import (
	"errors"

	"bijou/state/store"
)

var prefixCases = []testCase{
	{"prefix condition holds while nothing changes below", prefixHolds},
	{"prefix condition is broken by what changes below", prefixBroken},
	{"prefix condition is broken by the end of a lease", prefixLease},
	{"prefix condition with quiet puts", prefixQuiet},
	{"prefix condition of trimmed history", prefixTrimmed},
	{"prefix condition and key condition together", prefixAndKey},
}

// below returns a transaction that writes a key elsewhere if nothing has changed below the prefix.
func below(prefix string, revision int64) store.Txn {
	return store.Txn{
		Conds: []store.Cond{{Prefix: prefix, Revision: revision}},
		Ops:   []store.Op{put("out", "1")},
	}
}

func prefixHolds(f *fixture) {
	base := f.write(put("p/a", "1"), put("p/b", "1"))
	f.commit(below("p/", base))
	f.commit(below("", f.revision()))
	f.write(put("p", "1"), put("p.", "1"), put("p0", "1"), put("o", "1"), put("q", "1"), put("p\xff", "1"), del("p/none"))
	f.share().write(del("p"), del("p0"))
	f.commit(below("p/", base))
	// The condition's revision is in the future.
	f.commit(below("p/", base+1000000))

	inside := below("p/", base)
	inside.Ops = append(inside.Ops, put("p/c", "1"), del("p/a"))
	f.commit(inside)
	f.refused(store.ErrConflict, inside)
}

func prefixBroken(f *fixture) {
	base := f.write(put("p/a", "1"), put("p/b", "1"), put("\xff\xffa", "1"))
	cases := []struct {
		prefix string
		change []store.Op
	}{
		{"p/", []store.Op{put("p/c", "1")}},
		{"p/", []store.Op{put("p/a", "1")}},
		{"p/", []store.Op{del("p/b")}},
		{"p/z", []store.Op{put("o", "1"), put("p/zz", "1"), put("q", "1")}},
		{"p/exact", []store.Op{put("p/exact", "1")}},
		{"\xff", []store.Op{put("\xff\xffa", "2")}},
		{"\xff\xff", []store.Op{put("\xff\xff\xff", "2")}},
		{"", []store.Op{put("anything", "1")}},
	}
	for i, c := range cases {
		base = max(base, f.revision())
		f.share().write(c.change...)
		if _, err := f.s.Commit(f.ctx, below(c.prefix, base)); !errors.Is(err, store.ErrConflict) {
			f.Fatalf("case %d: below %q: got %v, want a conflict", i, c.prefix, err)
		}
	}
	base = f.write(put("p/brief", "1")) - 1
	f.write(del("p/brief"))
	// By now the revision is in the past.
	f.refused(store.ErrConflict, below("p/b", base))
	f.refused(store.ErrConflict, below("p/", 0))
	f.has("out")
}

func prefixLease(f *fixture) {
	l := f.lease(longTTL)
	base := f.write(under(l, "p/a", "1"))
	f.commit(below("p/", base))
	f.ok(l.Close(f.ctx))
	f.refused(store.ErrConflict, below("p/", base))
}

// prefixQuiet checks that a store works after quiet puts, whether conditions see them or not.
func prefixQuiet(f *fixture) {
	base := f.revision()
	blob := put("p/blob", "1")
	blob.Quiet = true
	f.write(blob)
	if _, err := f.s.Commit(f.ctx, below("p/", base)); err != nil {
		f.is(err, store.ErrConflict)
	}
	f.commit(below("p/", f.revision()))
}

// prefixTrimmed checks that a store refuses a condition about trimmed history, and accepts one at the
// newest revision.
func prefixTrimmed(f *fixture) {
	before := f.write(put("p/a", "1"))
	f.write(del("p/a"))
	f.write(put("o", "1"))
	newest := f.write(put("o", "2"))
	f.o.Compact(f.T, f.s, newest)
	f.refused(store.ErrConflict, below("p/", before))
	f.commit(below("p/", newest))
}

func prefixAndKey(f *fixture) {
	a := f.write(put("p/a", "1"))
	b := f.write(put("q", "1"))
	txn := store.Txn{
		Conds: []store.Cond{{Key: "p/a", Revision: a}, {Prefix: "p/", Revision: b}, {Key: "q", Revision: b}},
		Ops:   []store.Op{put("q", "2")},
	}
	f.commit(txn)
	f.refused(store.ErrConflict, txn)
}
