package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/kit/need"
)

func TestConformance(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	storetest.Run(t, storeOpener())
}

func storeOpener() storetest.Opener {
	return storetest.Opener{
		Fresh: func(t testing.TB) store.Store {
			path := filepath.Join(t.TempDir(), "store")
			check(t, sqlite.Create(t.Context(), path))
			return openAt(t, path)
		},
		Share:   func(t testing.TB, s store.Store) store.Store { return openAt(t, sqlite.Path(s)) },
		Compact: func(t testing.TB, s store.Store, revision int64) { check(t, sqlite.Compact(s, revision)) },
		Expire:  func(t testing.TB, s store.Store, id store.LeaseID) { check(t, sqlite.Expire(s, id)) },
		Kill:    func(_ testing.TB, s store.Store) { sqlite.Kill(s) },
		Away:    lockStore,
	}
}

// lockStore acquires the file's write lock, as if another process held it.
func lockStore(t testing.TB, s store.Store) (free func()) {
	db, err := sql.Open("sqlite", sqlite.Path(s))
	check(t, err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN IMMEDIATE")
	check(t, err)
	return func() {
		_, err := db.Exec("ROLLBACK")
		check(t, err)
		check(t, db.Close())
	}
}

func openAt(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	check(t, err)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
