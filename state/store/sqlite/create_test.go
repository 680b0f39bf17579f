package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/kit/need"
)

func TestCreate(t *testing.T) {
	need.Whole(t)
	folder := filepath.Join(t.TempDir(), "odd ?name#100%25&mode=ro")
	check(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "a store?.db")
	check(t, sqlite.Create(t.Context(), path))
	wantError(t, sqlite.Create(t.Context(), path), store.ErrExists)

	s := openWith(t, path, sqlite.Options{})
	put(t, s, "a", "1")
	w := watch(t, s, "a")
	next(t, w)
	var names []string
	entries, err := os.ReadDir(folder)
	check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		names = append(names, fmt.Sprintf("%s %o", e.Name(), info.Mode().Perm()))
	}
	want := []string{"a store?.db 600", "a store?.db-bell 600", "a store?.db-shm 600", "a store?.db-wal 600"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	wantErrorText(t, sqlite.Create(t.Context(), filepath.Join(folder, "none", "store")), "cannot create store", "no such file")
}

// TestCreateOverRemains checks that the log of a deleted store is not replayed into its successor.
func TestCreateOverRemains(t *testing.T) {
	need.Whole(t)
	path := newStorePath(t)
	s := openWith(t, path, sqlite.Options{})
	put(t, s, "old", "1")
	check(t, os.Remove(path))
	check(t, sqlite.Create(t.Context(), path))
	if _, ok := get(t, openWith(t, path, sqlite.Options{}), "old"); ok {
		t.Error("the new store holds what was put into the old one")
	}
}

func TestCreateRace(t *testing.T) {
	need.Whole(t)
	path := filepath.Join(t.TempDir(), "store")
	var all sync.WaitGroup
	made := make(chan bool, 8)
	for range cap(made) {
		all.Go(func() {
			switch err := sqlite.Create(t.Context(), path); {
			case err == nil:
				made <- true
				useStore(t, path)
			case !errors.Is(err, store.ErrExists):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(made) != 1 {
		t.Errorf("%d have made the store", len(made))
	}
}

// TestCreateLeavesOthers checks that a creation leaves the stores beside it, and no file of its own.
func TestCreateLeavesOthers(t *testing.T) {
	need.Whole(t)
	folder := t.TempDir()
	others := []string{"store-new", "store.bak", ".store"}
	for _, name := range others {
		check(t, sqlite.Create(t.Context(), filepath.Join(folder, name)))
	}

	left := filepath.Join(folder, ".store.creating-1") // by a process that was killed
	check(t, os.Link(filepath.Join(folder, "store.bak"), left))

	check(t, sqlite.Create(t.Context(), filepath.Join(folder, "store")))
	for _, name := range append(others, "store") {
		useStore(t, filepath.Join(folder, name))
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*creating*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// useStore writes to a store, and fails the test if another process has taken its log.
func useStore(t *testing.T, path string) {
	st, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Error(err)
		return
	}
	defer st.Close()
	for n := range 50 {
		op := store.Op{Key: fmt.Sprint("key", n), Value: []byte("x")}
		if _, err := st.Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
			t.Error(err)
			return
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	need.Whole(t)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		check(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	table := func(name, statements string) string {
		path := filepath.Join(folder, name)
		db, err := sql.Open("sqlite", path)
		check(t, err)
		_, err = db.Exec(statements)
		check(t, err)
		check(t, db.Close())
		return path
	}
	newer := filepath.Join(folder, "newer")
	check(t, sqlite.Create(t.Context(), newer))
	table("newer", "PRAGMA user_version = 99")
	for _, c := range []struct{ path, want string }{
		{filepath.Join(folder, "none"), "no store"},
		{filepath.Join(folder, "none", "none"), "no store"},
		{folder, "this is not a regular file"},
		{file("empty", ""), "this is not a bijou store"},
		{file("text", strings.Repeat("some text\n", 1000)), "this is not a bijou store"},
		{table("foreign", "CREATE TABLE t (a)"), "this is not a bijou store"},
		{newer, "the store has format 99, but this bijou supports only format 1"},
	} {
		t.Run(c.path, func(t *testing.T) {
			_, err := sqlite.Open(t.Context(), c.path)
			wantErrorText(t, err, fmt.Sprintf("cannot open store %q: ", c.path), c.want)
		})
	}
	_, err := sqlite.Open(t.Context(), filepath.Join(folder, "none"))
	wantError(t, err, store.ErrNoStore)
	if _, err := os.Stat(filepath.Join(folder, "none")); err == nil {
		t.Error("Open has made a file")
	}
}
