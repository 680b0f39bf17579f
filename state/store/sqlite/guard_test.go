package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// execSQL changes the file with a separate program that does not know generations.
func execSQL(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		_, err := db.Exec(s)
		check(t, err)
	}
}

// checkpoint writes the whole log into the file.
func checkpoint(t testing.TB, path string) {
	t.Helper()

	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)

	// If a reader needs a part of the log, SQLite keeps that part. It reports that in the result and not as
	// an error.
	await.Until(t, await.Poll{Limit: time.Minute}, "the log is in the file", func() bool {
		var busy, pages, moved int
		check(t, db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved))
		return busy == 0
	})
}

// commitAsFormer commits as a former binary without generations does.
func commitAsFormer(t testing.TB, path string) {
	t.Helper()
	execSQL(t, path, "BEGIN IMMEDIATE",
		"INSERT INTO kv SELECT CAST('former' || revision AS BLOB), NULL, revision + 1, 0 FROM head",
		"UPDATE head SET revision = revision + 1, trimmed = trimmed", "COMMIT")
}

// cp copies a file in a separate process. In this process, closing the file would drop SQLite's locks (guard.go).
func cp(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func putMany(t testing.TB, s store.Store, n int) {
	t.Helper()
	for range n {
		put(t, s, "many", "1")
	}
}

// quick has options with which a handle checks the content all the time.
var quick = sqlite.Options{PollInterval: 5 * time.Millisecond}

// awaitLooks returns after the store has been checked a few times.
func awaitLooks() { time.Sleep(60 * quick.PollInterval) }

// TestStays checks that permitted actions of other programs do not make a store count as replaced.
func TestStays(t *testing.T) {
	need.Whole(t)
	for name, change := range map[string]func(t *testing.T, path string){
		"truncating checkpoint": func(t *testing.T, path string) { checkpoint(t, path) },
		"log cut short": func(t *testing.T, path string) {
			execSQL(t, path, "PRAGMA journal_size_limit = 0", "PRAGMA wal_checkpoint(RESTART)")
			commitAsFormer(t, path)
		},
		"vacuum": func(t *testing.T, path string) {
			execSQL(t, path, "VACUUM")
			checkpoint(t, path)
		},
		"vacuum in the log": func(t *testing.T, path string) { execSQL(t, path, "VACUUM") },
		"commits of a binary from before": func(t *testing.T, path string) {
			for range 50 {
				commitAsFormer(t, path)
			}
			checkpoint(t, path)
		},
		"more commits than are remembered": func(t *testing.T, path string) {
			s := openWith(t, path, sqlite.Options{})
			putMany(t, s, 100)
			check(t, s.Close())
		},
		"the same content, written over the file": func(t *testing.T, path string) {
			// It does not use cp, which truncates the file first: a check at that moment would see different
			// content.
			content, err := os.ReadFile(path)
			check(t, err)
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			check(t, err)
			_, err = file.Write(content)
			check(t, errors.Join(err, file.Close()))
		},
		"a mark for another file": func(t *testing.T, path string) {
			check(t, os.WriteFile(path+"-replaced", []byte(`{"what": "x", "file": {"inode": 1}}`), 0o600))
			check(t, openWith(t, path, sqlite.Options{}).Close())
		},
	} {
		t.Run(name, func(t *testing.T) { testStays(t, change) })
	}
}

func testStays(t *testing.T, change func(t *testing.T, path string)) {
	path := newStorePath(t)
	watches, writes := openWith(t, path, quick), openWith(t, path, sqlite.Options{PollInterval: long})
	putMany(t, writes, 5)
	checkpoint(t, path)
	putMany(t, writes, 5)
	awaitLooks()

	for range 3 {
		change(t, path)
		awaitLooks()
		put(t, writes, "after", "1")
		put(t, watches, "after", "2")
	}
	check(t, watches.Close())
	check(t, writes.Close())
	s := openWith(t, path, quick)
	if v, _ := get(t, s, "after"); v != "2" {
		t.Errorf("got %q", v)
	}
	check(t, s.Close())
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last one to close it has left the log: %v", err)
	}
}

// TestFormerStore checks that a store written before generation numbers existed gets one with its first
// commit, and keeps its format.
func TestFormerStore(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	execSQL(t, path, "ALTER TABLE head DROP COLUMN generation")
	s := openWith(t, path, quick)
	awaitLooks()
	get(t, s, "a")
	commitAsFormer(t, path)
	put(t, s, "a", "1")
	commitAsFormer(t, path)
	put(t, openWith(t, path, sqlite.Options{}), "a", "2")
	checkpoint(t, path)
	awaitLooks()
	put(t, s, "a", "3")

	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	var version, bytes int
	check(t, db.QueryRow("PRAGMA user_version").Scan(&version))
	check(t, db.QueryRow("SELECT length(generation) FROM head").Scan(&bytes))
	if version != 1 || bytes == 0 {
		t.Errorf("the format is %d, the generation has %d bytes", version, bytes)
	}
}

// replacement is a way to replace a store under the processes that have it open.
type replacement struct {
	name    string
	prepare func(t *testing.T, path string) // before the commits that are lost
	replace func(t *testing.T, path string)

	left string // the keys that remain when the files in the error are removed
}

func replacements() []replacement {
	saved := func(path string) string { return path + ".saved" }
	saveFile := func(t *testing.T, path string) { cp(t, path, saved(path)) }
	saveBoth := func(t *testing.T, path string) {
		saveFile(t, path)
		cp(t, path+"-wal", saved(path)+"-wal")
	}
	none := func(*testing.T, string) {}
	return []replacement{
		{"log and index removed", none, func(t *testing.T, path string) {
			check(t, os.Remove(path+"-wal"))
			check(t, os.Remove(path+"-shm"))
		}, "kept lost"},
		{"log removed", none, func(t *testing.T, path string) { check(t, os.Remove(path+"-wal")) }, "kept lost"},
		{"index removed", none, func(t *testing.T, path string) { check(t, os.Remove(path+"-shm")) }, "kept lost"},
		{"older copy in place", saveFile, func(t *testing.T, path string) { cp(t, saved(path), path) }, "kept"},
		{"older copy in place, while nothing is in the log", saveFile, func(t *testing.T, path string) {
			checkpoint(t, path)
			cp(t, saved(path), path)
		}, "kept"},
		{"older copy in place, with its log", saveBoth, func(t *testing.T, path string) {
			cp(t, saved(path), path)
			cp(t, saved(path)+"-wal", path+"-wal")
		}, "kept"},
		{"older copy by rename", saveFile, func(t *testing.T, path string) { check(t, os.Rename(saved(path), path)) }, "kept"},
		{"another store in place", none, func(t *testing.T, path string) {
			other := newStorePath(t)
			s := openWith(t, other, sqlite.Options{})
			putMany(t, s, 20)
			check(t, s.Close())
			cp(t, other, path)
		}, "many"},
		{"a store from before the generation in place", func(t *testing.T, path string) {
			saveFile(t, path)
			execSQL(t, saved(path), "ALTER TABLE head DROP COLUMN generation")
		}, func(t *testing.T, path string) { cp(t, saved(path), path) }, "kept"},
		{"something else in place", none, func(t *testing.T, path string) {
			check(t, os.WriteFile(path, make([]byte, 10_000), 0o600))
		}, "this is not a bijou store"},
	}
}

// writing has options with which a handle checks the content so rarely that a commit usually notices a
// replacement first.
var writing = sqlite.Options{PollInterval: 300 * time.Millisecond}

// TestReplaced replaces the store of a process that only reads, of one that does not poll, and of one that
// writes. Each must notice the replacement and must not write again. No process may open the store until an
// operator has looked at it.
func TestReplaced(t *testing.T) {
	need.Whole(t)
	for _, r := range replacements() {
		t.Run(r.name, func(t *testing.T) {
			t.Run("looking", func(t *testing.T) { testReplaced(t, r, quick) })
			// Only polls notice this, since each commit writes the log.
			if r.name != "log removed" {
				t.Run("told", func(t *testing.T) { testReplaced(t, r, sqlite.Options{PollInterval: long}) })
			}
			t.Run("writing", func(t *testing.T) { testReplaced(t, r, writing) })
		})
	}
}

func testReplaced(t *testing.T, r replacement, options sqlite.Options) {
	path := newStorePath(t)
	s := openWith(t, path, options)
	put(t, s, "kept", "1")
	checkpoint(t, path)
	put(t, s, "kept", "2")
	r.prepare(t, path)
	put(t, s, "lost", "1")
	checkpoint(t, path)
	put(t, s, "lost", "2")
	w := watch(t, s, "none/")
	watched := make(chan error, 1)
	go func() {
		_, err := w.Next(t.Context())
		watched <- err
	}()
	// The guard has checked the file during this time.
	time.Sleep(2*min(options.PollInterval, writing.PollInterval) + 50*time.Millisecond)
	r.replace(t, path)

	if options == writing {
		await.Until(t, await.Poll{Limit: time.Minute, Pause: time.Millisecond}, "a commit is refused", func() bool {
			_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "too late"}}})
			return errors.Is(err, store.ErrStoreGone)
		})
	}
	var err error
	select {
	case err = <-watched:
	case <-time.After(time.Minute):
	}
	wantError(t, err, store.ErrStoreGone)
	replaced, ok := errors.AsType[*store.Replaced](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "too late"}}})
	wantError(t, err, store.ErrStoreGone)
	_, err = sqlite.Open(t.Context(), path)
	wantError(t, err, store.ErrStoreGone)
	wantErrorText(t, err, "cannot open store", replaced.What)

	cp(t, path, path+".before")
	check(t, s.Close())
	before, err := os.ReadFile(path + ".before")
	check(t, err)
	after, err := os.ReadFile(path)
	check(t, err)
	if r.left != "kept lost" && string(before) != string(after) {
		t.Error("the file was written when the store was closed")
	}
	for _, f := range replaced.Remove {
		if err := os.Remove(f); !errors.Is(err, os.ErrNotExist) {
			check(t, err)
		}
	}
	if got := start(t, "list", path).line(t); !strings.HasSuffix(got, r.left) && !strings.Contains(got, r.left+": ") {
		t.Errorf("then the store has %q, want %q", got, r.left)
	}
}

// TestMarkGoes checks that a new store does not have the mark of a replaced one, and that the removal of a
// store removes its mark.
func TestMarkGoes(t *testing.T) {
	need.Whole(t)
	path := filepath.Join(t.TempDir(), "store")
	mark := func() { check(t, os.WriteFile(path+"-replaced", []byte("{}"), 0o600)) }
	mark()
	check(t, sqlite.Create(t.Context(), path))
	check(t, openWith(t, path, sqlite.Options{}).Close())
	mark()
	check(t, sqlite.Remove(path))
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
