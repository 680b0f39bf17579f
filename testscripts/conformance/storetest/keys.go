package storetest

import (
	"bytes"
	"slices"
	"strings"

	"bijou/state/store"
)

var keyCases = []testCase{
	{"keys are any bytes and sorted by them", keyBytes},
	{"a prefix is bytes, not path elements", listPrefixes},
	{"values are any bytes", valueBytes},
	{"an empty value is not an absent key", emptyValue},
	{"values are copied in and out", valuesCopied},
}

// oddKeys are sorted by bytes.
var oddKeys = []string{
	"\x00", "\x00\x00", "\x01", "\n", " ", "%", "'; drop table kv; --", "*", "?",
	"A", "_", "a", "a\x00", "a\x00b", "a\nb", "a b", "a%", "a/", "a/b", "a/b/c", "a0", "aa", "ab",
	"a\u00e9", "a\u65e5\u672c", "a\xfe", "a\xff", "a\xff\xff", "b", "\u00e9", "\u65e5", "\xf0\x9f\x92\xa0", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff",
}

func keyBytes(f *fixture) {
	var ops []store.Op
	var all []string
	for i, key := range oddKeys {
		ops = append(ops, put(key, strings.Repeat("v", i)))
		all = append(all, key, strings.Repeat("v", i))
	}
	slices.Reverse(ops)
	w := f.watch(f.revision(), "")
	revision := f.write(ops...)
	f.has("", all...)
	f.sees(w, revision, oddKeys...)
	for i, key := range oddKeys {
		f.value(key, []byte(strings.Repeat("v", i)))
		f.commit(store.Txn{Conds: []store.Cond{{Key: key, Revision: revision}}})
	}
	for _, key := range oddKeys {
		deleted := f.write(del(key))
		f.equal(f.next(w), store.Batch{Revision: deleted, Events: []store.Event{{Key: key, Deleted: true}}})
	}
	f.has("")
}

func listPrefixes(f *fixture) {
	var ops []store.Op
	for _, key := range oddKeys {
		ops = append(ops, put(key, ""))
	}
	f.write(ops...)
	for _, prefix := range append(oddKeys, "a\xff\xff\xff", "none") {
		var want []string
		for _, key := range oddKeys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key, "")
			}
		}
		f.has(prefix, want...)
	}
}

func valueBytes(f *fixture) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := bytes.Repeat(every, store.MaxBytes/len(every))[:store.MaxBytes-len("large")]
	f.write(put("every", string(every)))
	f.write(put("large", string(large)))
	f.value("every", every)
	f.value("large", large)
	f.has("l", "large", string(large))
}

func emptyValue(f *fixture) {
	created := f.write(put("a", ""), store.Op{Key: "nil"})
	f.has("", "a", "", "nil", "")
	f.refused(store.ErrConflict, store.Txn{Conds: []store.Cond{{Key: "a"}}})
	f.commit(store.Txn{Conds: []store.Cond{{Key: "a", Revision: created}}})
	f.write(del("a"))
	f.absent(f.snapshot(), "a")
}

func valuesCopied(f *fixture) {
	value := []byte("before")
	f.write(store.Op{Key: "a", Value: value})
	copy(value, "AFTER!")
	snap := f.snapshot()
	copy(f.get(snap, "a").Value, "AFTER!")
	f.value("a", []byte("before"))
	f.listed(snap, "a", "a", "before")
}
