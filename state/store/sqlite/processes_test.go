package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/need"
)

// long is a poll interval that is longer than any test.
const long = time.Hour

func newStorePath(t testing.TB) string {
	t.Helper()
	path := t.TempDir() + "/store"
	check(t, sqlite.Create(t.Context(), path))
	return path
}

// openWith opens the store until the test ends.
func openWith(t testing.TB, path string, options sqlite.Options) store.Store {
	t.Helper()
	s, err := sqlite.OpenWith(t.Context(), path, options)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s store.Store, key, value string) int64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte(value)}}})
	check(t, err)
	return revision
}

// get reads a key, and reports whether the key exists.
func get(t testing.TB, s store.Store, key string) (string, bool) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	kv, ok, err := snap.Get(t.Context(), key)
	check(t, err)
	return string(kv.Value), ok
}

func watch(t testing.TB, s store.Store, prefix string) store.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), 0, store.Below(prefix))
	check(t, err)
	return w
}

// next returns the watcher's next batch within a minute.
func next(t testing.TB, w store.Watcher) store.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := w.Next(ctx)
	check(t, err)
	return b
}

func increment(s store.Store, key string) error {
	ctx := context.Background()
	for {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return err
		}
		kv, _, err := snap.Get(ctx, key)
		snap.Close()
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(kv.Value))
		_, err = s.Commit(ctx, store.Txn{
			Conds: []store.Cond{{Key: key, Revision: kv.Revision}},
			Ops:   []store.Op{{Key: key, Value: []byte(strconv.Itoa(n + 1))}},
		})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func TestProcessesCountTogether(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	children := []*child{start(t, "increment", path), start(t, "increment", path)}
	for range 100 {
		check(t, increment(s, "n"))
	}
	for _, c := range children {
		c.line(t)
	}
	if got, _ := get(t, s, "n"); got != "300" {
		t.Errorf("counted to %s, want 300", got)
	}
}

// TestBellWakes checks that the bell announces commits of another process. No poll happens during the test.
func TestBellWakes(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{PollInterval: long})
	start(t, "answer", path).line(t)
	w := watch(t, s, "pong")
	for range 20 {
		put(t, s, "ping", "")
		next(t, w)
	}
}

// TestKilledBeforeBell checks that a poll finds the commits of a writer that was killed before it could ring
// the bell.
func TestKilledBeforeBell(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	w := watch(t, s, "w/")
	put(t, s, "w/first", "")
	// The watcher is live now, and waits for the doorbell.
	next(t, w)
	c := start(t, "mute", path)
	c.line(t)
	fmt.Fprintln(c.in)
	if b := next(t, w); b.Events[0].Key != "w/mute" {
		t.Errorf("got %v", b)
	}
}

// TestStarvingWriter checks that commits of one process complete while another writes as fast as it
// can.
func TestStarvingWriter(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	c := start(t, "saturate", path)
	c.line(t)
	var longest, sum time.Duration
	const n = 200
	for i := range n {
		began := time.Now()
		put(t, s, "mine", strconv.Itoa(i))
		took := time.Since(began)
		longest, sum = max(longest, took), sum+took
	}
	t.Logf("beside a saturating process: mean %v, longest %v; that one made %d commits in %v", sum/n, longest, len(c.lines), sum)
}

func TestKilledHolder(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	w := watch(t, s, "presence/")
	c := start(t, "lease", path)
	fmt.Fprintln(c.in, "10m")
	c.line(t)
	next(t, w)
	if _, ok := get(t, openWith(t, path, sqlite.Options{}), "presence/child"); !ok {
		t.Fatal("the child is not present")
	}
	// The process stays a zombie until it is waited for.
	check(t, c.Process.Kill())
	if b := next(t, w); !b.Events[0].Deleted {
		t.Errorf("got %v", b)
	}
}

// TestOpenAfterKill checks that a process that opens the store right after a kill -9 reads the current
// state, before any poll.
func TestOpenAfterKill(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	c := start(t, "lease", path)
	fmt.Fprintln(c.in, "10m")
	c.line(t)
	c.kill()
	s := openWith(t, path, sqlite.Options{PollInterval: long})
	if _, ok := get(t, s, "presence/child"); ok {
		t.Error("a dead process is present")
	}
}

// steadyTTL is the TTL of a lease that survives a standstill of ten seconds at any moment, since it is
// refreshed every third of the TTL.
const steadyTTL = 18 * time.Second

// TestStoppedHolder checks that a suspended process loses its lease after the TTL, and notices that when it
// continues.
func TestStoppedHolder(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{PollInterval: 50 * time.Millisecond})
	w := watch(t, s, "presence/")
	c := start(t, "lease", path)
	fmt.Fprintln(c.in, steadyTTL)
	c.line(t)
	next(t, w)
	check(t, c.Process.Signal(syscall.SIGSTOP))
	if b := next(t, w); !b.Events[0].Deleted {
		t.Errorf("got %v", b)
	}
	check(t, c.Process.Signal(syscall.SIGCONT))
	if line := c.line(t); line != "done" {
		t.Errorf("got %q", line)
	}
}

func TestLockedFile(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	put(t, s, "before", "")
	c := start(t, "lock", path)
	c.line(t)

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Commit(short, store.Txn{Ops: []store.Op{{Key: "called off"}}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if _, ok := get(t, s, "before"); !ok {
		t.Error("the store cannot be read while it is locked")
	}

	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: fmt.Sprint("after", i)}}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	fmt.Fprintln(c.in)
	c.line(t)
	all.Wait()
	if _, ok := get(t, s, "called off"); ok {
		t.Error("a commit was written whose caller had called it off")
	}
}

func TestLockedTooLong(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{LockTimeout: 50 * time.Millisecond})
	start(t, "lock", path).line(t)
	_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a"}}})
	wantErrorText(t, err, "cannot write to store", "another process has had it locked for 50ms")
	wantError(t, err, store.ErrAway)
}

// TestLeaseThatWaited grants a lease while another process locks the file for longer than the lease's TTL.
// Once it is granted, the lease must be alive.
func TestLeaseThatWaited(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	const ttl = steadyTTL
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{LockTimeout: 10 * ttl})
	c := start(t, "lock", path)
	c.line(t)
	unlock := time.AfterFunc(ttl*3/2, func() { fmt.Fprintln(c.in) })
	defer unlock.Stop()
	l, err := s.Lease(t.Context(), ttl)
	check(t, err)
	select {
	case <-l.Done():
		t.Error("the lease was lost as soon as it was made")
	case <-time.After(ttl * 3 / 2):
	}
}

// TestExpiredWithoutObserver checks leases without an owner that a process has not observed before it opens
// the store. A lease whose last refresh is older than its TTL must have ended, and so must its keys.
// Otherwise a short command would show the agents behind a dead gateway as running forever.
func TestExpiredWithoutObserver(t *testing.T) {
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{PollInterval: long})
	granter := s.(store.LeaseGranter)
	grant := func(key string, ttl time.Duration) store.LeaseID {
		id, err := granter.GrantLease(t.Context(), ttl)
		check(t, err)
		_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte("1"), Lease: id}}})
		check(t, err)
		return id
	}

	grant("fresh", time.Hour)
	grant("expired", time.Millisecond)
	refreshed := grant("refreshed", time.Millisecond)
	lives, err := granter.RefreshLease(t.Context(), refreshed)
	check(t, err)
	if !lives {
		t.Error("a lease that nobody has ended cannot be refreshed")
	}
	check(t, sqlite.RefreshAsBefore(s, grant("refreshed before", time.Millisecond)))
	time.Sleep(5 * time.Millisecond) // longer than the TTLs

	other := openWith(t, path, sqlite.Options{PollInterval: long})
	for key, want := range map[string]bool{"fresh": true, "expired": false, "refreshed": false, "refreshed before": true} {
		if _, found := get(t, other, key); found != want {
			t.Errorf("key %q of a lease: found is %v, want %v", key, found, want)
		}
	}
}
