package updatertest

import (
	"path/filepath"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/await"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Rig is a store with the updater's keys.
type Rig struct {
	T     *testing.T
	URL   string          // empty if the store is in memory
	Store *keyspace.Space // the test's own
}

// MaxWait is many times longer than any step of these tests takes.
const MaxWait = 60 * time.Second

// OverStores runs a test over each kind of store that several processes can share.
func OverStores(t *testing.T, test func(r *Rig)) {
	t.Run("sqlite", func(t *testing.T) { test(NewRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))) })
	t.Run("etcd", func(t *testing.T) {
		test(NewRig(t, etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/neco")))
	})
}

// InMemory returns a rig in memory for bubbles of testing/synctest. It is closed when the test ends.
func InMemory(t *testing.T) *Rig {
	mem := memstore.New()
	keepFuture(t, mem)
	r := &Rig{T: t, Store: keyspace.New(mem, nil)}
	t.Cleanup(func() { _ = r.Store.Close() })
	return r
}

// NewRig returns a rig at the URL. It is closed when the test ends.
func NewRig(t *testing.T, url string) *Rig {
	t.Helper()
	if _, err := updater.InitStore(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	r := &Rig{T: t, URL: url}
	r.Store = r.Open()
	return r
}

// Open opens the store as a separate process would.
func (r *Rig) Open() *keyspace.Space {
	r.T.Helper()
	var s *keyspace.Space
	if r.URL == "" {
		s = keyspace.New(memstore.Share(r.Store.Store()), nil)
	} else {
		var err error
		if s, err = updater.OpenStore(r.T.Context(), r.URL); err != nil {
			r.T.Fatal(err)
		}
	}
	r.T.Cleanup(func() { _ = s.Close() })
	return s
}

// Update commits to the store.
func (r *Rig) Update(f func(tx *keyspace.Tx) error) {
	r.T.Helper()
	if err := r.Store.Update(r.T.Context(), f); err != nil {
		r.T.Fatal(err)
	}
}

// Begin registers the servers and requests a version.
func (r *Rig) Begin(version string, lrns ...int) {
	r.T.Helper()
	r.Update(func(tx *keyspace.Tx) error {
		for _, n := range lrns {
			if err := tx.Put(keys.BootServer(n), struct{}{}); err != nil {
				return err
			}
		}
		return tx.Put(keys.Target, record.Target{Version: version})
	})
}

// Await waits until ok returns true for the request and its workers.
func (r *Rig) Await(what string, ok func(q record.Request, workers map[int]record.Status) bool) {
	r.T.Helper()
	await.Until(r.T, await.Poll{Limit: MaxWait, Pause: 20 * time.Millisecond}, what, func() string {
		var q *record.Request
		var all map[int]record.Status
		err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
			if q, err = updater.LoadRequest(v); err == nil {
				all, err = updater.LoadWorkers(v)
			}
			return err
		})
		if err != nil {
			r.T.Fatal(err)
		}
		return await.Unless(q != nil && ok(*q, all), "%+v, %+v", q, all)
	})
}

// Succeeded reports whether the update has finished everywhere.
func Succeeded(q record.Request, _ map[int]record.Status) bool { return q.Succeeded() }

// Eventually waits until the condition holds.
func (r *Rig) Eventually(what string, ok func() bool) {
	r.T.Helper()
	await.Until(r.T, await.Poll{Limit: MaxWait}, what, ok)
}
