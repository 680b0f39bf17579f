package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// wantErrorText checks that the error contains these words.
func wantErrorText(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got error %q, want one with %q", err, w)
		}
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestGone(t *testing.T) {
	need.Whole(t)
	for name, remove := range map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { check(t, os.Remove(path)) },
		"moved":   func(t *testing.T, path string) { check(t, os.Rename(path, path+".old")) },
		"replaced": func(t *testing.T, path string) {
			other := newStorePath(t)
			check(t, os.Rename(other, path))
		},
	} {
		t.Run(name, func(t *testing.T) { testGone(t, remove) })
	}
}

func testGone(t *testing.T, remove func(t *testing.T, path string)) {
	path := newStorePath(t)
	s, idle := openWith(t, path, sqlite.Options{}), openWith(t, path, sqlite.Options{})
	put(t, s, "w/a", "1")
	l, err := idle.Lease(t.Context(), time.Minute)
	check(t, err)
	w := watch(t, idle, "w/")
	next(t, w)
	remove(t, path)

	_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "w/b"}}})
	wantError(t, err, store.ErrStoreGone)
	_, err = s.Snapshot(t.Context())
	wantError(t, err, store.ErrStoreGone)
	_, err = s.Watch(t.Context(), 0, store.Below("w/"))
	wantError(t, err, store.ErrStoreGone)
	_, err = s.Lease(t.Context(), time.Minute)
	wantError(t, err, store.ErrStoreGone)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = w.Next(ctx)
	wantError(t, err, store.ErrStoreGone)
	select {
	case <-l.Done():
	case <-ctx.Done():
		t.Error("the lease is not done")
	}
}

// TestPowerCut stops a process while it writes, and copies its files. The copy must be a sound store
// that contains every acknowledged commit.
func TestPowerCut(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	c := start(t, "saturate", path)
	promised, dice := 0, rand.New(rand.NewPCG(1, 0))
	for round := range 20 {
		for range 1 + dice.IntN(60) {
			promised, _ = strconv.Atoi(c.line(t))
		}
		c.pause(t)
		copied := filepath.Join(t.TempDir(), fmt.Sprint("copy", round))
		copyFile(t, path, copied)
		copyFile(t, path+"-wal", copied+"-wal")
		check(t, c.Process.Signal(syscall.SIGCONT))
		checkIntegrity(t, copied, promised)
	}
}

// pause stops the child. It returns when all its threads have stopped.
func (c *child) pause(t testing.TB) {
	t.Helper()
	check(t, c.Process.Signal(syscall.SIGSTOP))
	await.Until(t, await.Poll{Limit: time.Minute, Pause: time.Millisecond}, "the child stops", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.Process.Pid))
		check(t, err)
		stopped := 0
		for _, path := range stats {
			if stat, _ := os.ReadFile(path); bytes.Contains(stat, []byte(") T ")) {
				stopped++
			}
		}
		return stopped == len(stats)
	})
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	check(t, err)
	check(t, os.WriteFile(to, content, 0o600))
}

// checkIntegrity checks a store that "saturate" has written.
func checkIntegrity(t testing.TB, path string, promised int) {
	t.Helper()
	s := openWith(t, path, sqlite.Options{PollInterval: long})
	a, _ := get(t, s, "x/a")
	b, _ := get(t, s, "x/b")
	n, _ := strconv.Atoi(strings.Fields(a)[0])
	if a != b || n < promised {
		t.Errorf("promised %d, got %.10q and %.10q", promised, a, b)
	}
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	var verdict string
	check(t, db.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	if verdict != "ok" {
		t.Errorf("integrity check: %s", verdict)
	}
	put(t, s, "more", "1")
}

func TestDiskFull(t *testing.T) {
	need.Whole(t)
	s := openWith(t, newStorePath(t), sqlite.Options{})
	put(t, s, "before", "1")
	w := watch(t, s, "")
	next(t, w)
	check(t, sqlite.LimitPages(s, "60"))
	_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "large", Value: make([]byte, 500_000)}}})
	wantErrorText(t, err, "cannot write to store", "the disk is full")
	if v, _ := get(t, s, "before"); v != "1" {
		t.Errorf("got %q", v)
	}
	check(t, sqlite.LimitPages(s, "100000"))
	revision := put(t, s, "after", "1")
	if b := next(t, w); b.Revision != revision || len(b.Events) != 1 {
		t.Errorf("got %v", b)
	}
	if _, ok := get(t, s, "large"); ok {
		t.Error("it is there all the same")
	}
}

// TestTrimmed checks that the size of the log remains limited. A watcher that reads all the time must get all
// events, and a late watcher must get an error.
func TestTrimmed(t *testing.T) {
	need.Whole(t)
	const keep = 50
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{KeepCommits: keep})
	w := watch(t, s, "w")
	for range 10 * keep {
		if revision, b := put(t, s, "w", ""), next(t, w); b.Revision != revision {
			t.Fatalf("got %v, want revision %d", b, revision)
		}
	}
	_, err := watch(t, s, "w").Next(t.Context())
	wantError(t, err, store.ErrHistoryLost)

	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	var rows int
	check(t, db.QueryRow("SELECT count(*) FROM log").Scan(&rows))
	if rows < keep || rows > 2*keep {
		t.Errorf("the log has %d rows", rows)
	}
}

// TestLogIsSearched checks that a wake of the tailer reads only the new part of the log.
func TestLogIsSearched(t *testing.T) {
	need.Whole(t)
	plan, err := sqlite.QueryPlan(openWith(t, newStorePath(t), sqlite.Options{}))
	check(t, err)
	if !strings.Contains(plan, "SEARCH l ") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("the plan is\n%s", plan)
	}
}
