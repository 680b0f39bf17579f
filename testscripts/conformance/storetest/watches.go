package storetest

import (
	"context"
	"fmt"
	"time"

	"bijou/state/store"
)

var watchCases = []testCase{
	{"watch from now delivers whole commits in order", watchNow},
	{"watch from an old revision replays, then goes on", watchOld},
	{"watch from an old revision tells what has come and gone", watchGone},
	{"watch passes over commits that do not touch it", watchOthers},
	{"watch of several prefixes tells each key once", watchSeveral},
	{"watch of a prefix that is a key and begins other keys", watchBeginning},
	{"watch of a key is that key, and none that it begins", watchExactly},
	{"watch of a key from an old revision tells what has come and gone", watchExactlyGone},
	{"watch of keys and prefixes tells each key once", watchBoth},
	{"watch of prefixes at the end of all keys", watchLast},
	{"watch of everything", watchEverything},
	{"deleting an absent key is no event", watchAbsent},
	{"quiet puts need not be told, the rest of their commit is", watchQuiet},
	{"watch sees the commits of another opener", watchShared},
	{"watch from a trimmed revision is compacted", watchCompacted},
	{"an ended context leaves the watcher usable", watchCancelled},
	{"a waiting Next is woken by a commit", watchWoken},
	{"a value that comes with an event is that commit's", watchValues},
	{"hundreds of watchers, each told its own", watchMany},
}

func watchNow(f *fixture) {
	f.write(put("w/old", "1"))
	w := f.watch(f.revision(), "w/")
	first := f.write(put("w/a", "1"), put("w/b", "1"), put("w/c", "1"))
	second := f.write(del("w/b"), put("w/a", "2"))
	third := f.write(put("w/b", "3"))
	f.sees(w, first, "w/a", "w/b", "w/c")
	f.sees(w, second, "w/a", "-w/b")
	f.sees(w, third, "w/b")
}

func watchOld(f *fixture) {
	before := f.revision()
	first := f.write(put("w/a", "1"), put("other", "1"))
	second := f.write(put("w/a", "2"))
	third := f.write(del("w/a"), put("w/b", "1"))
	all, later := f.watch(before, "w/"), f.watch(second, "w/")
	f.sees(all, first, "w/a")
	f.sees(later, third, "-w/a", "w/b")
	fourth := f.write(put("w/c", "1"))
	f.sees(all, second, "w/a")
	f.sees(all, third, "-w/a", "w/b")
	f.sees(all, fourth, "w/c")
	f.sees(later, fourth, "w/c")
}

// watchGone checks keys that are deleted without a trace, and keys that did not exist before. Watchers that
// are opened after all changes must still report them.
func watchGone(f *fixture) {
	l := f.lease(longTTL)
	before := f.write(put("deleted", "1"), under(l, "leased", "1"), put("same", "1"))
	deleted := f.write(del("deleted"))
	brief := f.write(put("brief", "1"))
	gone := f.write(del("brief"))
	again := f.write(put("same", "1"))
	f.ok(l.Close(f.ctx))
	f.write(put("elsewhere", "1"))

	f.sees(f.watch(before, "deleted"), deleted, "-deleted")
	w := f.watch(before, "brief")
	f.sees(w, brief, "brief")
	f.sees(w, gone, "-brief")
	f.sees(f.watch(before, "same"), again, "same")
	f.vanish(f.watch(before, "leased"), "leased")
	f.sees(f.watch(before, "untouched"), f.write(put("untouched", "1")), "untouched")
}

func watchOthers(f *fixture) {
	w := f.watch(f.revision(), "w/")
	f.write(put("v/a", "1"))
	f.write(put("w", "1"), put("w.", "1"), put("w0", "1"))
	mixed := f.write(put("v/b", "1"), put("w/a", "1"), put("x", "1"))
	f.write(del("v/a"))
	last := f.write(put("w/b", "1"))
	f.sees(w, mixed, "w/a")
	f.sees(w, last, "w/b")
}

func watchSeveral(f *fixture) {
	w := f.watch(f.revision(), "a/", "b/", "a/b/", "a/b/c", "z/none")
	first := f.write(put("a/b/c", "1"), put("a/x", "1"), put("b/x", "1"), put("c/x", "1"))
	second := f.write(put("b/y", "1"))
	f.sees(w, first, "a/b/c", "a/x", "b/x")
	f.sees(w, second, "b/y")
}

func watchBeginning(f *fixture) {
	short, long := f.watch(f.revision(), "units/1"), f.watch(f.revision(), "units/1/")
	first := f.write(put("units/1", "1"))
	second := f.write(put("units/10", "1"))
	third := f.write(put("units/1/x", "1"), put("units/2", "1"))
	f.sees(short, first, "units/1")
	f.sees(short, second, "units/10")
	f.sees(short, third, "units/1/x")
	f.sees(long, third, "units/1/x")
}

func watchExactly(f *fixture) {
	all, w := f.watch(f.revision(), "machines/1"), f.watchScope(f.revision(), store.Exactly("machines/1", "machines/1/"))
	first := f.write(put("machines/1", "1"), put("machines/10", "1"))
	second := f.write(put("machines/11", "1"), put("machines/1/units/a/0", "1"))
	third := f.write(put("machines/1/", "1"))
	fourth := f.write(del("machines/1"), del("machines/10"))
	f.sees(w, first, "machines/1")
	f.sees(w, third, "machines/1/")
	f.sees(w, fourth, "-machines/1")
	f.sees(all, first, "machines/1", "machines/10")
	f.sees(all, second, "machines/1/units/a/0", "machines/11")
}

func watchExactlyGone(f *fixture) {
	l := f.lease(longTTL)
	before := f.write(put("deleted", "1"), put("deleted2", "1"), under(l, "leased", "1"), under(l, "leased2", "1"), put("same", "1"))
	f.write(del("deleted2"))
	deleted := f.write(del("deleted"))
	brief := f.write(put("brief", "1"), put("brief2", "1"))
	gone := f.write(del("brief"), del("brief2"))
	f.write(put("same2", "1"))
	again := f.write(put("same", "1"))
	f.ok(l.Close(f.ctx))
	f.write(put("elsewhere", "1"))

	f.sees(f.watchScope(before, store.Exactly("deleted")), deleted, "-deleted")
	w := f.watchScope(before, store.Exactly("brief"))
	f.sees(w, brief, "brief")
	f.sees(w, gone, "-brief")
	f.sees(f.watchScope(before, store.Exactly("same")), again, "same")
	f.vanish(f.watchScope(before, store.Exactly("leased")), "leased")
	f.sees(f.watchScope(before, store.Exactly("untouched")), f.write(put("untouched", "1")), "untouched")
}

func watchBoth(f *fixture) {
	w := f.watchScope(f.revision(), store.Scope{Keys: []string{"a", "b/x", "c", "c"}, Prefixes: []string{"b/", "b/x"}})
	first := f.write(put("a", "1"), put("b/x", "1"), put("c", "1"), put("a/x", "1"), put("b", "1"))
	second := f.write(put("b/xy", "1"), put("cc", "1"))
	f.sees(w, first, "a", "b/x", "c")
	f.sees(w, second, "b/xy")
}

func watchLast(f *fixture) {
	w := f.watch(f.revision(), "\xff", "a\xff")
	first := f.write(put("\xff\xff", "1"), put("a\xff\n", "1"), put("b", "1"))
	f.sees(w, first, "a\xff\n", "\xff\xff")
}

func watchEverything(f *fixture) {
	w := f.watch(f.revision(), "")
	first := f.write(put("\x00", "1"), put("m", "1"), put("\xff", "1"))
	f.sees(w, first, "\x00", "m", "\xff")
}

func watchAbsent(f *fixture) {
	w := f.watch(f.revision(), "w/")
	f.write(del("w/none"))
	mixed := f.write(del("w/none"), put("w/a", "1"))
	f.sees(w, mixed, "w/a")
}

func watchQuiet(f *fixture) {
	w := f.watch(f.revision(), "w/")
	blob := put("w/blob", "1")
	blob.Quiet = true
	alone := f.write(blob)
	mixed := f.write(blob, put("w/a", "1"))
	last := f.write(del("w/blob"))
	b := f.next(w)
	if b.Revision == alone {
		f.equal(b.Events, []store.Event{{Key: "w/blob"}})
		b = f.next(w)
	}
	f.equal(b.Revision, mixed)
	f.equal(b.Events[0], store.Event{Key: "w/a"})
	f.sees(w, last, "-w/blob")
}

func watchShared(f *fixture) {
	other := f.share()
	w, here := other.watch(f.revision(), "w/"), f.watch(f.revision(), "w/")
	for i := range 20 {
		from := []handle{f.handle, other}[i%2]
		revision := from.write(put("w/a", "1"), put("w/b", "1"))
		other.sees(w, revision, "w/a", "w/b")
		f.sees(here, revision, "w/a", "w/b")
	}
}

func watchCompacted(f *fixture) {
	old := f.write(put("w/a", "1"))
	kept := f.watch(old, "w/")
	for range 3 {
		f.sees(kept, f.write(put("w/a", "2")), "w/a")
	}
	newest := f.revision()
	f.o.Compact(f.T, f.s, newest)

	w := f.watch(old, "w/")
	_, err := w.Next(f.ctx)
	f.is(err, store.ErrHistoryLost)

	fresh := f.watch(newest, "w/")
	next := f.write(put("w/a", "3"))
	f.sees(fresh, next, "w/a")
	f.sees(kept, next, "w/a")
	f.has("w/", "w/a", "3")
}

func watchCancelled(f *fixture) {
	w := f.watch(f.revision(), "w/")
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := w.Next(ended)
	f.is(err, context.Canceled)

	short, cancel := context.WithTimeout(f.ctx, 20*time.Millisecond)
	defer cancel()
	_, err = w.Next(short)
	f.is(err, context.DeadlineExceeded)

	first := f.write(put("w/a", "1"))
	second := f.write(put("w/b", "1"))
	f.sees(w, first, "w/a")
	f.sees(w, second, "w/b")
}

func watchWoken(f *fixture) {
	w := f.watch(f.revision(), "w/")
	got, failed := make(chan store.Batch), make(chan error)
	go func() {
		b, err := w.Next(f.ctx)
		if err != nil {
			failed <- err
			return
		}
		got <- b
	}()
	revision := f.share().write(put("w/a", "1"))
	select {
	case b := <-got:
		f.equal(bare(b), store.Batch{Revision: revision, Events: []store.Event{{Key: "w/a"}}})
	case err := <-failed:
		f.Fatal(err)
	}
}

func watchMany(f *fixture) {
	const n = 300
	var watchers []store.Watcher
	for i := range n {
		watchers = append(watchers, f.watch(f.revision(), fmt.Sprintf("u/%d/", i), "all"))
	}
	own := map[int]int64{}
	for i := 0; i < n; i += 10 {
		own[i] = f.write(put(fmt.Sprintf("u/%d/x", i), "1"))
	}
	last := f.write(put("all", "1"))
	for i, w := range watchers {
		if own[i] != 0 {
			f.sees(w, own[i], fmt.Sprintf("u/%d/x", i))
		}
		f.sees(w, last, "all")
	}
}

// watchValues checks that the values in events are correct, even in events of the past, and for keys
// that were written again or deleted since.
func watchValues(f *fixture) {
	before := f.revision()
	now := f.watch(before, "w/")
	want := map[int64]map[string]string{
		f.write(put("w/a", "1"), put("w/b", "1")): {"w/a": "1", "w/b": "1"},
		f.write(put("w/a", "2"), del("w/b")):      {"w/a": "2", "w/b": ""},
		f.write(put("w/a", "3")):                  {"w/a": "3"},
	}
	for _, w := range []store.Watcher{now, f.watch(before, "w/")} {
		for range want {
			b, err := w.Next(f.ctx)
			f.ok(err)
			for _, e := range b.Events {
				if value := want[b.Revision][e.Key]; e.Value != nil && string(e.Value) != value {
					f.Errorf("of %q at revision %d: %q, want %q or nothing", e.Key, b.Revision, e.Value, value)
				}
			}
		}
	}
}
