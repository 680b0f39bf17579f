package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestStorms lets watchers follow writers while the cluster has a fault. No event may be lost, duplicated or
// out of order, no matter which connection breaks. Refreshed leases must survive.
func TestStorms(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	for _, c := range []struct {
		name   string
		strike func(t *testing.T, s store.Store, c *etcdtest.Cluster)
	}{
		{"a member is killed and comes back", func(t *testing.T, _ store.Store, c *etcdtest.Cluster) {
			for _, m := range c.Members {
				waitFault(500 * time.Millisecond)
				check(t, m.Kill())
				waitFault(time.Second)
				check(t, m.Start())
			}
		}},
		{"a member stands still", func(t *testing.T, _ store.Store, c *etcdtest.Cluster) {
			check(t, c.Members[1].Pause())
			waitFault(4 * time.Second)
			check(t, c.Members[1].Resume())
		}},
		{"history is compacted", func(t *testing.T, s store.Store, _ *etcdtest.Cluster) {
			// A watcher of the past may be told that its history was compacted.
			waitFault(500 * time.Millisecond)
			for range 10 {
				_, err := etcd.Client(s).Compact(t.Context(), revision(t, s))
				check(t, err)
				waitFault(100 * time.Millisecond)
			}
		}},
		{"all members are away for a time", func(t *testing.T, _ store.Store, c *etcdtest.Cluster) {
			for _, m := range c.Members {
				check(t, m.Kill())
			}
			waitFault(3 * time.Second)
			forAllMembers(t, c, (*etcdtest.Member).Start)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.For(t, etcdtest.Options{Members: 3})
			s := newStore(t, cluster)
			defer s.Close()
			l, err := s.Lease(t.Context(), time.Minute)
			check(t, err)
			commit(t, s, store.Txn{Ops: []store.Op{{Key: "presence", Lease: l.ID()}}})
			checkWatchersDuring(t, s, func() { c.strike(t, s, cluster) })
			select {
			case <-l.Done():
				t.Error("the lease is lost")
			default:
			}
			if len(list(t, s, "presence")) != 1 {
				t.Error("the key under the lease has vanished")
			}
		})
	}
}

// steadyTTL is the TTL of a lease that survives a standstill of ten seconds at any moment, since it is
// refreshed every third of the TTL.
const steadyTTL = 18 * time.Second

// waitFault waits while a fault lasts. Tests do not use it to wait for an event.
func waitFault(d time.Duration) { <-time.After(d) }

// forAllMembers calls do for all members in parallel, because a member may not be ready without the
// others.
func forAllMembers(t *testing.T, c *etcdtest.Cluster, do func(*etcdtest.Member) error) {
	t.Helper()
	var group sync.WaitGroup
	for _, m := range c.Members {
		group.Go(func() {
			if err := do(m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// checkWatchersDuring writes before, during and after the strike, and checks the events that watchers get.
func checkWatchersDuring(t *testing.T, s store.Store, strike func()) {
	const writers = 4
	other := openAt(t, etcd.URL(s))
	defer other.Close()
	both, from := []store.Store{s, other}, revision(t, s)
	told := make([][]store.Batch, 6)
	var watchers, running sync.WaitGroup
	for i := range told {
		prefixes := [][]string{{"w/"}, {"w/0/", "w/1/", "w/2/", "w/3/", "w/common", "w/end"}}[i%2]
		w, err := both[i%2].Watch(t.Context(), from, store.Below(prefixes...))
		check(t, err)
		defer w.Close()
		watchers.Go(func() { told[i] = batchesUntilEnd(t, w) })
	}
	stop := make(chan struct{})
	count := make([]int, writers)
	for i := range writers {
		running.Go(func() { count[i] = writeUntil(t, both[i%2], i, stop) })
	}
	strike()
	waitFault(500 * time.Millisecond)
	close(stop)
	running.Wait()
	_, err := commitUntilKnown(t.Context(), s, store.Txn{Ops: []store.Op{{Key: "w/end"}}})
	check(t, err)
	watchers.Wait()
	for i := range told {
		if diff := cmp.Diff(told[0], told[i]); diff != "" {
			t.Errorf("watcher %d was told something else than watcher 0:\n%s", i, diff)
		}
	}
	checkComplete(t, told[0], count)
	t.Logf("%v commits of the writers, %d batches", count, len(told[0]))
}

// writeUntil repeatedly commits its own key and a common one.
func writeUntil(t *testing.T, s store.Store, me int, stop <-chan struct{}) (n int) {
	for {
		select {
		case <-stop:
			return n
		default:
		}
		ops := []store.Op{{Key: fmt.Sprintf("w/%d/%d", me, n)}, {Key: "w/common"}}
		if _, err := commitUntilKnown(t.Context(), s, store.Txn{Ops: ops}); err != nil {
			t.Errorf("writer %d: %v", me, err)
			return n
		}
		n++
	}
}

func batchesUntilEnd(t *testing.T, w store.Watcher) (got []store.Batch) {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for {
		b, err := w.Next(ctx)
		if err != nil {
			t.Errorf("after %d batches: %v", len(got), err)
			return got
		}
		slices.SortFunc(b.Events, func(a, b store.Event) int { return strings.Compare(a.Key, b.Key) })
		if b.Events[0].Key == "w/end" {
			return got
		}
		got = append(got, b)
	}
}

// checkComplete checks that the batches are complete and in order, and contain all keys of each writer. A key
// may occur twice only if its commit was repeated.
func checkComplete(t *testing.T, told []store.Batch, count []int) {
	seen := map[string]bool{}
	last := int64(0)
	for _, b := range told {
		if b.Revision <= last || len(b.Events) != 2 {
			t.Errorf("after revision %d: %v", last, b)
		}
		last = b.Revision
		for _, e := range b.Events {
			seen[e.Key] = true
		}
	}
	for i, n := range count {
		for j := range n {
			if key := fmt.Sprintf("w/%d/%d", i, j); !seen[key] {
				t.Errorf("%s was not told", key)
			}
		}
	}
}

// TestOutage checks that calls end with their contexts, and with a reason, while no member answers. Short
// leases must end by this process's own clock. Afterwards all operations must work again.
func TestOutage(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{})
	s := newStore(t, c)
	defer s.Close()
	short, err := s.Lease(t.Context(), steadyTTL)
	check(t, err)
	long, err := s.Lease(t.Context(), 3*time.Minute)
	check(t, err)
	before := commit(t, s, store.Txn{Ops: []store.Op{{Key: "short", Lease: short.ID()}, {Key: "long", Lease: long.ID()}}})
	w, err := s.Watch(t.Context(), before, store.Below("long", "new"))
	check(t, err)
	defer w.Close()

	check(t, c.Members[0].Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	_, _, err = snap.Get(ctx, "long")
	wantError(t, err, context.DeadlineExceeded)
	_, err = s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "a"}}})
	wantError(t, err, context.DeadlineExceeded)
	_, err = s.Lease(ctx, time.Minute)
	wantError(t, err, context.DeadlineExceeded)
	_, err = w.Next(ctx)
	wantError(t, err, context.DeadlineExceeded)
	<-short.Done()
	// This watcher is opened while no member answers.
	late, err := s.Watch(t.Context(), before, store.Below("new"))
	check(t, err)
	defer late.Close()

	check(t, c.Members[0].Start())
	committed, err := commitUntilKnown(t.Context(), s, store.Txn{Ops: []store.Op{{Key: "new"}}})
	check(t, err)
	for _, w := range []store.Watcher{w, late} {
		for told := (store.Batch{}); told.Revision != committed; {
			told, err = w.Next(t.Context())
			check(t, err)
			// An earlier commit whose result did not arrive in time may have been carried out too.
			if diff := cmp.Diff([]store.Event{{Key: "new"}}, told.Events); diff != "" || told.Revision > committed {
				t.Fatalf("told of revision %d, want %d: %s", told.Revision, committed, diff)
			}
		}
	}
	select {
	case <-long.Done():
		t.Error("the long lease is done")
	default:
	}
	check(t, long.Close(t.Context()))
	if n := len(list(t, s, "long")); n != 0 {
		t.Error("the key of a closed lease is there")
	}
}

// TestCompactedWhileAway compacts the history while the watchers have no connection. They must get the error
// that tells them to read again, and new watchers must work.
func TestCompactedWhileAway(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	s := newStore(t, c)
	defer s.Close()
	before := put(t, s, "a")
	w, err := s.Watch(t.Context(), before, store.Below("a", "b"))
	check(t, err)
	defer w.Close()
	put(t, s, "a")
	_, err = w.Next(t.Context())
	check(t, err)

	forAllMembers(t, c, (*etcdtest.Member).Kill)
	forAllMembers(t, c, (*etcdtest.Member).Start)
	helper := openAt(t, etcd.URL(s))
	defer helper.Close()
	// The watcher's connection may or may not be back before the history is compacted.
	for range 5 {
		put(t, helper, "a")
	}
	newest := put(t, helper, "a")
	_, err = etcd.Client(helper).Compact(t.Context(), newest)
	check(t, err)
	for err == nil {
		var b store.Batch
		if b, err = w.Next(t.Context()); b.Revision == newest {
			break
		}
	}
	if err != nil && !errors.Is(err, store.ErrHistoryLost) {
		t.Fatal(err)
	}
	again, err := s.Watch(t.Context(), revision(t, s), store.Below("a", "b"))
	check(t, err)
	defer again.Close()
	next := put(t, helper, "b")
	b, err := again.Next(t.Context())
	check(t, err)
	if b.Revision != next {
		t.Errorf("got %v, want revision %d", b, next)
	}
}
