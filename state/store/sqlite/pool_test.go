package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/need"
)

// TestReadersShareConnections checks many parallel readers, like those of an agent that starts with many
// units.
func TestReadersShareConnections(t *testing.T) {
	need.Whole(t)
	s := newStore(t)
	var readers sync.WaitGroup
	for range 300 {
		readers.Go(func() {
			snap := read(t, s, 100)
			snap.Close()
		})
	}
	readers.Wait()
	if n := openFiles(t, sqlite.Path(s)); n > 12 {
		t.Errorf("300 short readers left the file open %d times, want at most 12", n)
	}
}

// TestReadWhileClosing checks that a read gets ErrClosed if it begins just after the connections were closed.
func TestReadWhileClosing(t *testing.T) {
	s := newStore(t)
	if err := sqlite.ReadWhileClosing(s); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}

// TestReadersThatHold opens more snapshots than the number of kept connections. No reader may wait forever.
func TestReadersThatHold(t *testing.T) {
	need.Whole(t)
	s := newStore(t)
	for range 10 {
		snap := read(t, s, 1)
		defer snap.Close()
	}
}

// TestReadersThatAreClosed checks that closed connections no longer count, so that other connections are
// opened immediately.
func TestReadersThatAreClosed(t *testing.T) {
	s := newStore(t)
	for range 20 {
		snap := read(t, s, 1)
		check(t, sqlite.BreakSnapshot(snap))
		snap.Close()
	}

	var held []store.Snapshot
	for range 10 {
		held = append(held, read(t, s, 1))
	}
	// The store's own reader can have opened one more, which then stays idle.
	awaitOpen(t, s, 10, 11)

	for _, snap := range held {
		snap.Close()
	}
	awaitOpen(t, s, 8, 8)
}

// awaitOpen waits until from low to high connections count as open, since the store itself also reads now and then.
func awaitOpen(t *testing.T, s store.Store, low, high int) {
	t.Helper()
	for range 500 {
		if n := sqlite.OpenReaders(s); low <= n && n <= high {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections count as open, want %d to %d", sqlite.OpenReaders(s), low, high)
}

func newStore(t *testing.T) store.Store {
	path := filepath.Join(t.TempDir(), "state.db")
	check(t, sqlite.Create(t.Context(), path))
	s := openAt(t, path)
	t.Cleanup(func() { s.Close() })
	return s
}

// read returns a snapshot from which a key was read the given number of times.
func read(t *testing.T, s store.Store, times int) store.Snapshot {
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Error(err)
	}
	for range times {
		if _, _, err := snap.Get(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	return snap
}

// openFiles returns the number of times that this process has the file open.
func openFiles(t *testing.T, path string) (n int) {
	links, err := filepath.Glob("/proc/self/fd/*")
	check(t, err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == path {
			n++
		}
	}
	return n
}

// TestDiscardedWithinTransaction checks that no reader gets a connection that is still in a transaction and
// would read an earlier state.
func TestDiscardedWithinTransaction(t *testing.T) {
	s := newStore(t)
	sqlite.DiscardSnapshot(read(t, s, 1))
	revision, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a", Value: []byte("1")}}})
	check(t, err)

	snap, err := s.Snapshot(t.Context())
	check(t, err)
	defer snap.Close()
	got, err := snap.Revision(t.Context())
	if got != revision || err != nil {
		t.Errorf("revision %d, error %v; want %d", got, err, revision)
	}
}
