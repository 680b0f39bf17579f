package storetest

import (
	"context"
	"time"

	"bijou/state/store"
)

var leaseCases = []testCase{
	{"closing a lease deletes its keys as one commit", leaseClose},
	{"closing a lease twice, and one that is lost", leaseCloseTwice},
	{"closing the opener ends its leases", leaseOpenerClose},
	{"a lease whose holder is killed expires", leaseKilled},
	{"a lease outlives its TTL while it is refreshed", leaseRefreshed},
	{"a put under a lease that does not live", leaseDead},
	{"Done is closed when the lease is lost", leaseLost},
	{"a put without a lease frees the key", leaseFreed},
	{"a put under another lease moves the key", leaseMoved},
	{"a key put again after a deletion is free", leaseDeleted},
	{"a lease without keys makes no event", leaseEmpty},
	{"leases are told apart", leasesApart},
}

const (
	// A lease is refreshed every third of its TTL. With this TTL a lease survives a standstill of ten seconds
	// at any moment.
	shortTTL = 18 * time.Second
	longTTL  = time.Minute
)

// lease grants a lease that ends with its handle.
func (h handle) lease(ttl time.Duration) store.Lease {
	h.Helper()
	l, err := h.s.Lease(h.ctx, ttl)
	h.ok(err)
	return l
}

// under returns an operation that writes a key under a lease.
func under(l store.Lease, key, value string) store.Op {
	return store.Op{Key: key, Value: []byte(value), Lease: l.ID()}
}

// done waits for the lease's end.
func (h handle) done(l store.Lease) {
	h.Helper()
	select {
	case <-l.Done():
	case <-h.ctx.Done():
		h.Fatal("the lease is not done")
	}
}

func (h handle) alive(l store.Lease) {
	h.Helper()
	select {
	case <-l.Done():
		h.Fatal("the lease is done")
	default:
	}
}

// vanish reads the watcher's next batch, which must delete exactly these keys, and returns the batch's
// revision.
func (h handle) vanish(w store.Watcher, keys ...string) int64 {
	h.Helper()
	b := h.next(w)
	want := []store.Event{}
	for _, key := range keys {
		want = append(want, store.Event{Key: key, Deleted: true})
	}
	h.equal(b.Events, want)
	return b.Revision
}

func leaseClose(f *fixture) {
	l := f.lease(longTTL)
	put := f.write(under(l, "w/a", "1"), under(l, "w/b", "1"), put("w/c", "1"))
	f.alive(l)
	w, other := f.watch(put, "w/"), f.share()
	there := other.watch(put, "w/")
	f.ok(l.Close(f.ctx))
	f.has("w/", "w/c", "1")
	f.done(l)
	revision := f.vanish(w, "w/a", "w/b")
	f.equal(other.vanish(there, "w/a", "w/b"), revision)
	f.equal(f.revision(), revision)
}

func leaseCloseTwice(f *fixture) {
	l := f.lease(longTTL)
	f.ok(l.Close(f.ctx))
	f.ok(l.Close(f.ctx))
	lost := f.lease(longTTL)
	f.o.Expire(f.T, f.s, lost.ID())
	f.ok(lost.Close(f.ctx))
}

func leaseOpenerClose(f *fixture) {
	other := f.share()
	a, b := other.lease(longTTL), other.lease(longTTL)
	kept := f.lease(longTTL)
	revision := other.write(under(a, "w/a", "1"), under(b, "w/b", "1"), under(kept, "w/kept", "1"))
	w := f.watch(revision, "w/")
	f.ok(other.s.Close())
	f.has("w/", "w/kept", "1")
	f.done(a)
	f.done(b)
	// A store may use one commit for each lease, or one for both.
	if len(f.next(w).Events) == 1 {
		f.next(w)
	}
	f.alive(kept)
}

func leaseKilled(f *fixture) {
	other := f.share()
	l := other.lease(shortTTL)
	revision := other.write(under(l, "w/a", "1"), under(l, "w/b", "1"))
	w := f.watch(revision, "w/")
	f.has("w/", "w/a", "1", "w/b", "1")
	f.o.Kill(f.T, other.s)
	f.vanish(w, "w/a", "w/b")
	f.has("w/")
	f.refused(store.ErrLeaseLost, store.Txn{Ops: []store.Op{under(l, "w/a", "1")}})
}

func leaseRefreshed(f *fixture) {
	other := f.share()
	l := other.lease(shortTTL)
	revision := other.write(under(l, "w/a", "1"))
	w := f.watch(revision, "w/")
	short, cancel := context.WithTimeout(f.ctx, 3*shortTTL)
	defer cancel()
	_, err := w.Next(short)
	f.is(err, context.DeadlineExceeded)
	f.alive(l)
	f.has("w/", "w/a", "1")
	other.write(under(l, "w/b", "1"))
}

func leaseDead(f *fixture) {
	l := f.lease(longTTL)
	f.ok(l.Close(f.ctx))
	before := f.revision()
	f.refused(store.ErrLeaseLost, store.Txn{Ops: []store.Op{put("a", "1"), under(l, "b", "1")}})
	unknown := put("c", "1")
	unknown.Lease = l.ID() + 12345
	f.refused(store.ErrLeaseLost, store.Txn{Ops: []store.Op{unknown}})
	f.has("")
	f.equal(f.revision(), before)
}

func leaseLost(f *fixture) {
	l := f.lease(shortTTL)
	revision := f.write(under(l, "w/a", "1"))
	w := f.watch(revision, "w/")
	f.alive(l)
	f.o.Expire(f.T, f.s, l.ID())
	f.vanish(w, "w/a")
	f.done(l)
	f.refused(store.ErrLeaseLost, store.Txn{Ops: []store.Op{under(l, "w/a", "1")}})
}

func leaseFreed(f *fixture) {
	l := f.lease(longTTL)
	f.write(under(l, "a", "1"), under(l, "b", "1"))
	f.write(put("a", "2"))
	f.ok(l.Close(f.ctx))
	f.has("", "a", "2")
}

func leaseMoved(f *fixture) {
	first, second := f.lease(longTTL), f.lease(longTTL)
	f.write(under(first, "a", "1"))
	f.write(under(second, "a", "2"))
	f.ok(first.Close(f.ctx))
	f.has("", "a", "2")
	f.ok(second.Close(f.ctx))
	f.has("")
}

func leaseDeleted(f *fixture) {
	l := f.lease(longTTL)
	f.write(under(l, "a", "1"))
	f.write(del("a"))
	f.write(put("a", "2"))
	f.ok(l.Close(f.ctx))
	f.has("", "a", "2")
}

func leaseEmpty(f *fixture) {
	l := f.lease(longTTL)
	w := f.watch(f.revision(), "")
	f.ok(l.Close(f.ctx))
	f.sees(w, f.write(put("a", "1")), "a")
}

func leasesApart(f *fixture) {
	other := f.share()
	a, b := f.lease(longTTL), other.lease(longTTL)
	if a.ID() == b.ID() || a.ID() == 0 || b.ID() == 0 {
		f.Fatalf("lease ids %d and %d", a.ID(), b.ID())
	}
	f.write(under(a, "a", "1"))
	other.write(under(b, "b", "1"))
	f.ok(a.Close(f.ctx))
	f.has("", "b", "1")
	f.alive(b)
	later := f.lease(longTTL)
	if later.ID() == a.ID() {
		f.Fatal("a lease id is used again")
	}
}
