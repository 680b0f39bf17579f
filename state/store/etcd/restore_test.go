package etcd_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// mayRestore reports whether the test restores clusters. In all other tests no store may find that history
// went back.
func mayRestore(t testing.TB) bool { return strings.HasPrefix(t.Name(), "TestRestored") }

// captureLog returns the log during a test, including lines of parallel tests.
func captureLog(t *testing.T) func() string {
	var mu sync.Mutex
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestRestored restores a cluster from older data at the same addresses and as the same cluster. Old
// watchers, leases and snapshots must end by themselves, and the log must report the restoration once. New
// reads and watches must show the restored data.
func TestRestored(t *testing.T) {
	need.Whole(t)
	for name, members := range map[string]int{"one": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			text := captureLog(t)
			c := etcdtest.For(t, etcdtest.Options{Members: members})
			s := newStore(t, c)
			defer s.Close()
			// This handle only watches.
			idle := openAt(t, etcd.URL(s))
			defer idle.Close()
			old := put(t, s, "a/old")
			check(t, c.Save())
			before := useAll(t, s, idle)
			check(t, c.Restore())
			before.checkEnded(t)

			for _, s := range []store.Store{s, idle} {
				now := revision(t, s)
				if now >= before.revision {
					t.Fatalf("revision %d after %d: nothing went back", now, before.revision)
				}
				if keys := list(t, s, "a/"); len(keys) != 1 || keys[0].Revision != old {
					t.Errorf("there is %v", keys)
				}
				checkFollows(t, s, now)
				checkRefuses(t, s, before.revision+1000)
				if n := etcd.Epoch(s); n != 1 {
					t.Errorf("history went back %d times", n)
				}
			}
			// Each of the two stores logs this once.
			if n := strings.Count(text(), "reading everything again"); n != 2 {
				t.Errorf("it was said %d times:\n%s", n, text())
			}
		})
	}
}

// usedStore contains the watchers, lease and snapshot of a store from before the cluster was restored.
type usedStore struct {
	revision int64
	watchers []store.Watcher
	lease    store.Lease
	snapshot store.Snapshot
}

// useAll writes, and opens watchers, a lease and a snapshot.
func useAll(t *testing.T, s, idle store.Store) (u usedStore) {
	t.Helper()
	for _, s := range []store.Store{s, idle} {
		// There are no events for these prefixes.
		for _, prefix := range []string{"a/", "b/"} {
			w, err := s.Watch(t.Context(), revision(t, s), store.Below(prefix))
			check(t, err)
			t.Cleanup(w.Close)
			u.watchers = append(u.watchers, w)
		}
	}
	var err error
	u.lease, err = s.Lease(t.Context(), time.Minute)
	check(t, err)
	for range 20 {
		u.revision = put(t, s, "a/new")
	}
	for i := range 2 {
		for range 20 {
			_, err := u.watchers[2*i].Next(t.Context())
			check(t, err)
		}
	}
	u.snapshot, err = s.Snapshot(t.Context())
	check(t, err)
	t.Cleanup(u.snapshot.Close)
	_, err = u.snapshot.Revision(t.Context())
	check(t, err)
	return u
}

// checkEnded waits until the old watchers, lease and snapshot end by themselves.
func (u usedStore) checkEnded(t *testing.T) {
	t.Helper()
	for _, w := range u.watchers {
		_, err := w.Next(t.Context())
		wantError(t, err, store.ErrHistoryLost)
	}
	select {
	case <-u.lease.Done():
	case <-time.After(30 * time.Second):
		t.Error("the lease of before is still there")
	}
	_, _, err := u.snapshot.Get(t.Context(), "a/new")
	wantError(t, err, store.ErrHistoryLost)
}

// checkFollows opens a watch, and then writes and deletes a key. The watch must see the write.
func checkFollows(t *testing.T, s store.Store, after int64) {
	t.Helper()
	w, err := s.Watch(t.Context(), after, store.Below("a/"))
	check(t, err)
	defer w.Close()
	want := put(t, s, "a/later")
	if b, err := w.Next(t.Context()); err != nil || b.Revision != want {
		t.Errorf("told of %+v, error %v; want revision %d", b, err, want)
	}
	commit(t, s, store.Txn{Ops: []store.Op{{Key: "a/later", Delete: true}}})
}

// checkRefuses opens a watch from a revision that never existed. The watch must end.
func checkRefuses(t *testing.T, s store.Store, after int64) {
	t.Helper()
	w, err := s.Watch(t.Context(), after, store.Below("a/"))
	check(t, err)
	defer w.Close()
	_, err = w.Next(t.Context())
	wantError(t, err, store.ErrHistoryLost)
}

// TestRestoredAgain checks that each restore is noticed, even by a store that only watches, and that watchers
// get the commits between the restores.
func TestRestoredAgain(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{})
	s := newStore(t, c)
	defer s.Close()
	check(t, c.Save())
	for n := range 3 {
		w, err := s.Watch(t.Context(), revision(t, s), store.Below("a"))
		check(t, err)
		for range 5 {
			put(t, s, "a")
			_, err := w.Next(t.Context())
			check(t, err)
		}
		check(t, c.Restore())
		_, err = w.Next(t.Context())
		wantError(t, err, store.ErrHistoryLost)
		w.Close()
		if got := etcd.Epoch(s); got != n+1 {
			t.Errorf("history went back %d times, want %d", got, n+1)
		}
	}
}

// TestNothingRestored restarts a cluster, changes its leader, suspends it and compacts it while many requests
// run. None of these may count as a restored snapshot. (openAt checks the same in the other tests.)
func TestNothingRestored(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	s := newStore(t, c)
	defer s.Close()
	w, err := s.Watch(t.Context(), revision(t, s), store.Below("a"))
	check(t, err)
	defer w.Close()
	stop, asking := make(chan struct{}), sync.WaitGroup{}
	for range 16 {
		asking.Go(func() { askUntil(t, s, stop) })
	}
	for _, m := range c.Members {
		check(t, m.Kill())
		check(t, m.Start())
		check(t, m.Pause())
		waitFault(time.Second)
		check(t, m.Resume())
		_, err := m.Compact()
		check(t, err)
	}
	forAllMembers(t, c, (*etcdtest.Member).Kill)
	forAllMembers(t, c, (*etcdtest.Member).Start)
	put(t, s, "end")
	close(stop)
	asking.Wait()
	if n := etcd.Epoch(s); n > 0 {
		t.Errorf("history went back %d times", n)
	}
}

// askUntil reads and writes, and ignores the results.
func askUntil(t *testing.T, s store.Store, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		_, _ = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a"}}})
		snap, err := s.Snapshot(t.Context())
		if err != nil {
			continue
		}
		_, _ = snap.List(t.Context(), "a")
		_, _, _ = snap.Get(t.Context(), "a")
		snap.Close()
	}
}
