package storetest

import (
	"bijou/state/store"
)

var closeCases = []testCase{
	{"a closed watcher", closedWatcher},
	{"a closed snapshot", closedSnapshot},
	{"a closed opener", closedOpener},
	{"closing the opener wakes its watchers", closeWakes},
	{"a store opened again holds what was committed", openedAgain},
}

func closedWatcher(f *fixture) {
	w, other := f.watch(f.revision(), "w/"), f.watch(f.revision(), "w/")
	revision := f.write(put("w/a", "1"))
	w.Close()
	w.Close()
	_, err := w.Next(f.ctx)
	f.is(err, store.ErrClosed)
	f.sees(other, revision, "w/a")
}

func closedSnapshot(f *fixture) {
	unread, read := f.snapshot(), f.snapshot()
	f.revisionOf(read)
	for _, snap := range []store.Snapshot{unread, read} {
		snap.Close()
		snap.Close()
		_, _, err := snap.Get(f.ctx, "a")
		f.is(err, store.ErrClosed)
		_, err = snap.List(f.ctx, "a")
		f.is(err, store.ErrClosed)
	}
}

func closedOpener(f *fixture) {
	other := f.share()
	other.write(put("a", "1"))
	l := other.lease(longTTL)
	w := other.watch(0, "w/")
	f.ok(other.s.Close())
	f.ok(other.s.Close())

	_, err := other.s.Snapshot(f.ctx)
	f.is(err, store.ErrClosed)
	other.refused(store.ErrClosed, store.Txn{Ops: []store.Op{put("a", "2")}})
	_, err = other.s.Watch(f.ctx, 0, store.Below("w/"))
	f.is(err, store.ErrClosed)
	_, err = other.s.Lease(f.ctx, longTTL)
	f.is(err, store.ErrClosed)
	_, err = w.Next(f.ctx)
	f.is(err, store.ErrClosed)
	f.ok(l.Close(f.ctx))
	w.Close()
	f.has("", "a", "1")
}

func closeWakes(f *fixture) {
	other := f.share()
	failed := make(chan error)
	for range 3 {
		w := other.watch(f.revision(), "w/")
		go func() {
			_, err := w.Next(f.ctx)
			failed <- err
		}()
	}
	w := other.watch(f.revision(), "w/")
	go func() {
		_, err := w.Next(f.ctx)
		failed <- err
	}()
	w.Close()
	f.is(<-failed, store.ErrClosed)
	f.ok(other.s.Close())
	for range 3 {
		f.is(<-failed, store.ErrClosed)
	}
}

func openedAgain(f *fixture) {
	first := f.share()
	revision := first.write(put("a", "1"), put("b", "2"))
	f.ok(first.s.Close())
	again := f.share()
	again.has("", "a", "1", "b", "2")
	f.equal(again.revision(), revision)
	again.sees(again.watch(revision-1, ""), revision, "a", "b")
}
