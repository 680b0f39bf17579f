package storetest

import (
	"context"
	"sync"

	"bijou/state/store"
)

var readCases = []testCase{
	{"snapshot of an empty store", emptySnapshot},
	{"snapshot is fixed by its first get", fixedByGet},
	{"snapshot is fixed by its first list", fixedByList},
	{"snapshot is fixed by asking its revision", fixedByRevision},
	{"snapshot is not fixed before its first read", notFixedBefore},
	{"keys that are prefetched are of the snapshot's revision", prefetched},
	{"another opener reads what was committed", readsOfOthers},
	{"keys carry the revision of their commit", keyRevisions},
	{"list under concurrent commits is of one revision", listIsWhole},
	{"reads end with their context", readsCancelled},
}

func emptySnapshot(f *fixture) {
	snap := f.snapshot()
	f.absent(snap, "a")
	f.listed(snap, "")
}

func fixedByGet(f *fixture) {
	f.write(put("a", "1"), put("b", "1"), put("c", "1"))
	snap := f.snapshot()
	f.get(snap, "a")
	stale(f, snap)
}

func fixedByList(f *fixture) {
	f.write(put("a", "1"), put("b", "1"), put("c", "1"))
	snap := f.snapshot()
	f.listed(snap, "none")
	stale(f, snap)
}

func prefetched(f *fixture) {
	f.write(put("a", "1"), put("b", "1"), put("c", "1"))
	snap := f.snapshot()
	f.ok(snap.Prefetch(f.ctx, store.Exactly("a", "d")))
	f.equal(string(f.get(snap, "a").Value), "1")
	f.absent(snap, "d")
	stale(f, snap)
	fresh := f.snapshot()
	f.ok(fresh.Prefetch(f.ctx, store.Exactly("a")))
	f.share().write(put("a", "3"), put("c", "3"))
	// Either both values must be old, or both must be new.
	f.equal(string(f.get(fresh, "a").Value) == "3", string(f.get(fresh, "c").Value) == "3")
	f.ok(fresh.Prefetch(f.ctx, store.Exactly("c")))
	f.ok(fresh.Prefetch(f.ctx, store.Scope{}))

	// A prefetched list is of the snapshot's revision, also if its keys are prefetched alone.
	f.write(put("l/1", "1"), put("l/2", "1"))
	listing := f.snapshot()
	f.ok(listing.Prefetch(f.ctx, store.Scope{Keys: []string{"l/2", "a"}, Prefixes: []string{"l/", "none/"}}))
	f.share().write(put("l/3", "1"), del("l/1"))
	f.equal(string(f.get(listing, "l/2").Value), "1")
	before := []string{"l/1", "1", "l/2", "1"}
	first, err := listing.List(f.ctx, "l/")
	f.ok(err)
	if first[0].Key == "l/2" { // the store has prefetched nothing, and so begins with the first read
		before = []string{"l/2", "1", "l/3", "1"}
	}
	f.listed(listing, "l/", before...)
	f.listed(listing, "none/")
}

func fixedByRevision(f *fixture) {
	want := f.write(put("a", "1"), put("b", "1"), put("c", "1"))
	snap := f.snapshot()
	f.equal(f.revisionOf(snap), want)
	stale(f, snap)
}

// stale changes everything and checks that the snapshot does not see it.
func stale(f *fixture, snap store.Snapshot) {
	f.Helper()
	before := f.revisionOf(snap)
	after := f.share().write(put("a", "2"), del("b"), put("d", "2"))
	if after <= before {
		f.Fatalf("revision %d is not after %d", after, before)
	}
	f.equal(string(f.get(snap, "a").Value), "1")
	f.equal(string(f.get(snap, "b").Value), "1")
	f.absent(snap, "d")
	f.listed(snap, "", "a", "1", "b", "1", "c", "1")
	f.equal(f.revisionOf(snap), before)
	f.has("", "a", "2", "c", "1", "d", "2")
}

func notFixedBefore(f *fixture) {
	f.write(put("a", "1"))
	snap := f.snapshot()
	f.write(put("a", "2"))
	f.equal(string(f.get(snap, "a").Value), "2")
}

func readsOfOthers(f *fixture) {
	other := f.share()
	for range 20 {
		revision := f.write(put("a", "1"))
		snap := other.snapshot()
		f.equal(other.get(snap, "a").Revision, revision)
		snap.Close()
	}
}

func keyRevisions(f *fixture) {
	first := f.write(put("a", "1"), put("b", "1"))
	second := f.write(put("b", "1"))
	snap := f.snapshot()
	kvs, err := snap.List(f.ctx, "")
	f.ok(err)
	f.equal(kvs, []store.KV{
		{Key: "a", Value: []byte("1"), Revision: first},
		{Key: "b", Value: []byte("1"), Revision: second},
	})
	f.equal(f.revisionOf(snap), second)
}

func listIsWhole(f *fixture) {
	values := []string{"0", "1", "2", "3"}
	write := func(h handle, v string) {
		h.write(put("x/a", v), put("x/b", v), put("x/c", v), put("x/d", v))
	}
	write(f.handle, "0")
	var writer sync.WaitGroup
	stop := make(chan struct{})
	other := f.share()
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				write(other, values[i%len(values)])
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	for range 200 {
		snap := f.snapshot()
		v := string(f.get(snap, "x/a").Value)
		f.listed(snap, "x/", "x/a", v, "x/b", v, "x/c", v, "x/d", v)
		snap.Close()
	}
}

func readsCancelled(f *fixture) {
	f.write(put("a", "1"))
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	snap, err := f.s.Snapshot(ctx)
	if err == nil {
		defer snap.Close()
		_, _, err = snap.Get(ctx, "a")
	}
	f.is(err, context.Canceled)
	f.equal(string(f.get(f.snapshot(), "a").Value), "1")
}
