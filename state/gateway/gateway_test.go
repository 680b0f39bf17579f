package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/fakes/memstore"
)

// listed grants full rights to the prefixes in the key rights/IDENTITY, and no other rights.
type listed struct {
	// between, if not nil, runs after the decision about a commit.
	between func()
}

type listedRights struct {
	access   *listed
	who      gateway.Identity
	prefixes []string
}

func (a *listed) Rights(ctx context.Context, v gateway.View, who gateway.Identity) (gateway.Rights, error) {
	kv, _, err := v.Get(ctx, "rights/"+string(who))
	return &listedRights{a, who, strings.Fields(string(kv.Value))}, err
}

func (r *listedRights) below(what, key string) error {
	if slices.ContainsFunc(r.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
		return nil
	}
	return fmt.Errorf("%s must not %s %q: %w", r.who, what, key, store.ErrDenied)
}

func (r *listedRights) MayRead(_ context.Context, key string, _ []byte) error {
	return r.below("read", key)
}
func (r *listedRights) Show(_ string, value []byte) []byte { return value }

func (r *listedRights) MayList(_ context.Context, prefix string) error {
	if prefix == "forbidden/" {
		return r.below("list", prefix)
	}
	return nil
}

func (r *listedRights) MayWatch(_ context.Context, prefix string) error {
	if prefix == "" || prefix == "forbidden/" {
		return r.below("watch", prefix)
	}
	if strings.HasSuffix(prefix, "/") {
		return nil
	}
	return r.below("watch", prefix)
}

func (r *listedRights) MayWatchPrefix(ctx context.Context, prefix string) error {
	return r.MayWatch(ctx, prefix)
}

func (r *listedRights) MayCommit(_ context.Context, ops []store.Op) error {
	for _, o := range ops {
		if err := r.below("write", o.Key); err != nil {
			return err
		}
	}
	if r.access.between != nil {
		r.access.between()
	}
	return nil
}

// world is a gateway in front of a store in memory.
type world struct {
	*testing.T
	base   store.Store
	access *listed
	g      *gateway.Gateway
	dir    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, base: memstore.New(), access: &listed{}, dir: t.TempDir()}
	var err error
	w.g, err = gateway.New(w.base, w.access)
	w.ok(err)
	t.Cleanup(func() { w.base.Close() })
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got error %v, want %v", err, want)
	}
}

func (w *world) equal(got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("(-want +got)\n%s", diff)
	}
}

// put writes keys and values, which alternate, directly to the store.
func (w *world) put(pairs ...string) int64 {
	w.Helper()
	var txn store.Txn
	for pair := range slices.Chunk(pairs, 2) {
		txn.Ops = append(txn.Ops, store.Op{Key: pair[0], Value: []byte(pair[1])})
	}
	revision, err := w.base.Commit(w.Context(), txn)
	w.ok(err)
	return revision
}

func (w *world) remove(keys ...string) int64 {
	w.Helper()
	var txn store.Txn
	for _, key := range keys {
		txn.Ops = append(txn.Ops, store.Op{Key: key, Delete: true})
	}
	revision, err := w.base.Commit(w.Context(), txn)
	w.ok(err)
	return revision
}

func (w *world) listen(who gateway.Identity) (*gateway.Endpoint, string) {
	w.Helper()
	socket := filepath.Join(w.dir, string(who))
	e, err := w.g.Listen(who, socket)
	w.ok(err)
	w.T.Cleanup(e.Close)
	return e, socket
}

func (w *world) open(socket string) store.Store {
	w.Helper()
	s, err := remote.Open(w.Context(), "bijou+unix://"+socket)
	w.ok(err)
	w.T.Cleanup(func() { s.Close() })
	return s
}

// as opens the store as an identity with rights to the prefixes.
func (w *world) as(who gateway.Identity, prefixes string) store.Store {
	w.Helper()
	w.put("rights/"+string(who), prefixes)
	_, socket := w.listen(who)
	return w.open(socket)
}

func (w *world) keys(s store.Store, prefix string) (keys []string) {
	w.Helper()
	snap, err := s.Snapshot(w.Context())
	w.ok(err)
	defer snap.Close()
	kvs, err := snap.List(w.Context(), prefix)
	w.ok(err)
	for _, kv := range kvs {
		keys = append(keys, kv.Key)
	}
	return keys
}

func (w *world) watch(s store.Store, after int64, scope store.Scope) store.Watcher {
	w.Helper()
	watcher, err := s.Watch(w.Context(), after, scope)
	w.ok(err)
	w.T.Cleanup(watcher.Close)
	return watcher
}

// sees checks the watcher's next batch. -KEY is a deletion.
func (w *world) sees(watcher store.Watcher, revision int64, want ...string) {
	w.Helper()
	b, err := watcher.Next(w.Context())
	w.ok(err)
	var got []string
	for _, e := range b.Events {
		if e.Deleted {
			e.Key = "-" + e.Key
		}
		got = append(got, e.Key)
	}
	w.equal(got, want)
	w.equal(b.Revision, revision)
}

func TestReadsAreFiltered(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/ c/")
	w.put("a/1", "1", "b/1", "1", "c/1", "1", "c/2", "")
	snap, err := s.Snapshot(t.Context())
	w.ok(err)
	defer snap.Close()

	w.equal(w.keys(s, ""), []string{"a/1", "c/1", "c/2"})
	w.ok(snap.Prefetch(t.Context(), store.Exactly("a/1", "b/1", "c/none")))
	_, _, err = snap.Get(t.Context(), "b/1")
	w.is(err, store.ErrDenied)
	_, ok, err := snap.Get(t.Context(), "c/none") // the snapshot still works
	w.ok(err)
	w.equal(ok, false)
	_, _, err = snap.Get(t.Context(), "rights/machine-1")
	w.is(err, store.ErrDenied)
}

// TestPrefetchOfLists checks that a prefetched list shows the same keys as any other list. If the identity
// must not read a list, the keys that are prefetched beside it must stay readable.
func TestPrefetchOfLists(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/")
	w.put("a/1", "1", "a/2", "2", "b/1", "1")
	prefetched := func(next store.Scope) store.Snapshot {
		t.Helper()
		snap, err := s.Snapshot(t.Context())
		w.ok(err)
		t.Cleanup(snap.Close)
		w.ok(snap.Prefetch(t.Context(), next))
		return snap
	}
	list := func(snap store.Snapshot, prefix string) (keys []string) {
		t.Helper()
		kvs, err := snap.List(t.Context(), prefix)
		w.ok(err)
		for _, kv := range kvs {
			keys = append(keys, kv.Key)
		}
		return keys
	}

	// A key of the list is also prefetched alone.
	snap := prefetched(store.Scope{Keys: []string{"a/2", "a/3"}, Prefixes: []string{"a/"}})
	w.put("a/0", "late")
	w.equal(list(snap, "a/"), []string{"a/1", "a/2"})
	kv, ok, err := snap.Get(t.Context(), "a/2")
	w.ok(err)
	w.equal(ok && string(kv.Value) == "2", true)

	snap = prefetched(store.Scope{Keys: []string{"a/1"}, Prefixes: []string{"forbidden/"}})
	_, ok, err = snap.Get(t.Context(), "a/1")
	w.ok(err)
	w.equal(ok, true)
	_, err = snap.List(t.Context(), "forbidden/")
	w.is(err, store.ErrDenied)
}

func TestCommitsAreHeldToRights(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/")
	w.put("a/1", "1", "b/1", "1")
	before := w.keys(w.base, "")
	for name, txn := range map[string]store.Txn{
		"put":             {Ops: []store.Op{{Key: "a/2"}, {Key: "b/2"}}},
		"delete":          {Ops: []store.Op{{Key: "a/1", Delete: true}, {Key: "b/1", Delete: true}}},
		"condition":       {Conds: []store.Cond{{Key: "b/1", Revision: 12}}, Ops: []store.Op{{Key: "a/2"}}},
		"absence":         {Conds: []store.Cond{{Key: "b/2"}}},
		"its own rights":  {Ops: []store.Op{{Key: "rights/machine-1", Value: []byte("b/")}}},
		"another's lease": {Ops: []store.Op{{Key: "gateway-leases/machine-1/7"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Commit(t.Context(), txn)
			w.is(err, store.ErrDenied)
			w.equal(w.keys(w.base, ""), before)
		})
	}

	_, err := s.Commit(t.Context(), store.Txn{Conds: []store.Cond{{Prefix: "b/"}, {Key: "a/2"}}, Ops: []store.Op{{Key: "a/2"}}})
	w.is(err, store.ErrConflict)
	_, err = s.Commit(t.Context(), store.Txn{Conds: []store.Cond{{Key: "a/2"}}, Ops: []store.Op{{Key: "a/2"}}})
	w.ok(err)
}

// TestRightsAreConditions removes the rights between the decision and the commit.
func TestRightsAreConditions(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/")
	w.access.between = func() { w.put("rights/machine-1", "") }
	_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a/1"}}})
	w.is(err, store.ErrConflict)
	_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a/1"}}})
	w.is(err, store.ErrDenied)
	w.equal(len(w.keys(w.base, "a/")), 0)
}

// TestRightsOfBefore checks a commit that is refused. If a key has changed on which it depends, the gateway
// must return a conflict instead, so that the client reads again.
func TestRightsOfBefore(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/")
	w.put("a/1", "1")
	read := w.put("a/1", "2")
	txn := store.Txn{Conds: []store.Cond{{Key: "a/1", Revision: read}}, Ops: []store.Op{{Key: "b/1"}}}
	_, err := s.Commit(t.Context(), txn)
	w.is(err, store.ErrDenied)
	w.put("a/1", "3")
	_, err = s.Commit(t.Context(), txn)
	w.is(err, store.ErrConflict)
	w.equal(len(w.keys(w.base, "b/")), 0)
}

func TestWatchesAreFiltered(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "a/ m/1")
	from := w.put("b/0", "1")
	below, one := w.watch(s, from, store.Below("a/", "b/")), w.watch(s, from, store.Exactly("m/1"))
	w.put("b/1", "1")
	w.sees(below, w.put("a/1", "1", "b/2", "1"), "a/1")
	w.put("rights/machine-1", "m/1 ")
	w.put("a/2", "1")
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := below.Next(short)
	w.is(err, context.DeadlineExceeded)
	w.put("rights/machine-1", "a/ m/1")
	w.sees(below, w.remove("a/1"), "-a/1")
	w.sees(one, w.put("m/1", "1", "m/2", "1"), "m/1")

	_, err = w.watch(s, from, store.Below("forbidden/")).Next(t.Context())
	w.is(err, store.ErrDenied)
}

func TestLeasesAreTheIdentitys(t *testing.T) {
	w := newWorld(t)
	one, two := w.as("machine-1", "a/"), w.as("machine-2", "a/")
	l, err := one.Lease(t.Context(), 10*time.Second)
	w.ok(err)
	under := store.Txn{Ops: []store.Op{{Key: "a/1", Lease: l.ID()}}}
	_, err = two.Commit(t.Context(), under)
	w.is(err, store.ErrLeaseLost)
	_, err = one.Commit(t.Context(), under)
	w.ok(err)
	w.equal(w.keys(one, ""), []string{"a/1"})

	w.ok(w.g.RevokeAll(t.Context(), "machine-2"))
	w.equal(w.keys(one, ""), []string{"a/1"})
	w.ok(w.g.RevokeAll(t.Context(), "machine-1"))
	w.equal(len(w.keys(one, "")), 0)
	w.equal(w.keys(w.base, "gateway-leases/"), []string(nil))
	_, err = one.Commit(t.Context(), under)
	w.is(err, store.ErrLeaseLost)
}

// TestParallelLeasesAreBounded checks that the limit applies to leases that two gateways grant at the same
// time.
func TestParallelLeasesAreBounded(t *testing.T) {
	w := newWorld(t)
	other, err := gateway.New(w.base, w.access)
	w.ok(err)
	e, err := other.Listen("machine-1", filepath.Join(w.dir, "other"))
	w.ok(err)
	t.Cleanup(e.Close)

	var granted atomic.Int64
	var all sync.WaitGroup
	for _, s := range []store.Store{w.as("machine-1", ""), w.open(filepath.Join(w.dir, "other"))} {
		for range 80 {
			all.Go(func() {
				if _, err := s.Lease(t.Context(), time.Minute); err == nil {
					granted.Add(1)
				}
			})
		}
	}
	all.Wait()
	w.equal(granted.Load(), int64(64))
	w.equal(len(w.keys(w.base, "gateway-leases/")), 64)
}

// TestWatchesAreBounded checks that the watches of an identity are limited, on all of its connections
// together, and that a watch above the limit waits until another one ends.
func TestWatchesAreBounded(t *testing.T) {
	w := newWorld(t)
	socket := w.as("machine-1", "a/")
	second := w.open(filepath.Join(w.dir, "machine-1"))
	from := w.put("a/0", "0")
	var all []store.Watcher
	for i := range 512 {
		all = append(all, w.watch([]store.Store{socket, second}[i%2], from, store.Below("a/")))
	}
	revision := w.put("a/1", "1")
	for _, one := range all {
		w.sees(one, revision, "a/1")
	}

	late := w.watch(second, from, store.Below("a/"))
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := late.Next(short)
	w.is(err, context.DeadlineExceeded)
	w.equal(len(w.keys(second, "a/")), 2) // the second connection can still read

	all[0].Close()
	w.sees(late, revision, "a/1")
}

func TestLeasesAreBounded(t *testing.T) {
	w := newWorld(t)
	s := w.as("machine-1", "")
	if _, err := s.Lease(t.Context(), time.Hour); err == nil {
		t.Error("a lease of an hour was granted")
	}
	granted := 0
	for granted < 100 {
		if _, err := s.Lease(t.Context(), time.Minute); err != nil {
			break
		}
		granted++
	}
	w.equal(granted, 64)
}

// TestEndpointEnds checks that all requests through a socket end immediately when the socket is closed, and
// that no others do.
func TestEndpointEnds(t *testing.T) {
	w := newWorld(t)
	w.put("rights/machine-1", "a/", "rights/machine-2", "a/")
	e, socket := w.listen("machine-1")
	s, other := w.open(socket), w.as("machine-2", "a/")
	from := w.put("a/1", "1")
	watcher, stays := w.watch(s, from, store.Below("a/")), w.watch(other, from, store.Below("a/"))
	w.sees(watcher, w.put("a/2", "1"), "a/2")
	snap, err := s.Snapshot(t.Context())
	w.ok(err)
	_, err = snap.Revision(t.Context())
	w.ok(err)

	e.Close()
	e.Close()
	_, _, err = snap.Get(t.Context(), "a/1")
	w.is(err, store.ErrHistoryLost)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = s.Commit(short, store.Txn{Ops: []store.Op{{Key: "a/3"}}})
	w.is(err, store.ErrAway)
	w.is(err, context.DeadlineExceeded)
	missed := w.put("a/4", "1")
	w.sees(stays, from+1, "a/2")
	w.sees(stays, missed, "a/4")

	w.listen("machine-1") // a client that comes back gets the changes that it has missed
	w.sees(watcher, missed, "a/4")
	w.equal(w.keys(s, "a/"), []string{"a/1", "a/2", "a/4"})
}

// TestOlderCopy checks that the revisions that a client knows are ignored after the store is replaced by an
// older copy.
func TestOlderCopy(t *testing.T) {
	w := newWorld(t)
	e, socket := w.listen("machine-1")
	s := w.open(socket)
	w.put("a/1", "1", "rights/machine-1", "a/")
	watcher := w.watch(s, w.put("a/2", "1"), store.Below("a/"))
	w.equal(w.keys(s, "a/"), []string{"a/1", "a/2"})
	e.Close()

	older := newWorld(t)
	older.put("rights/machine-1", "a/")
	e, err := older.g.Listen("machine-1", socket)
	w.ok(err)
	defer e.Close()
	_, err = watcher.Next(t.Context())
	w.is(err, store.ErrStoreGone)
	_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "a/1"}}})
	w.is(err, store.ErrStoreGone)
}

// TestLongPath checks a path that is too long for a socket's address, which is limited to 107 bytes.
func TestLongPath(t *testing.T) {
	w := newWorld(t)
	w.dir = filepath.Join(w.dir, strings.Repeat("d", 200))
	if _, err := w.g.Listen("machine-1", filepath.Join(w.dir, "socket")); err == nil {
		t.Error("there is no such folder")
	}
	w.ok(os.Mkdir(w.dir, 0o700))
	s := w.as("machine-1", "a/")
	w.put("a/1", "1")
	w.equal(w.keys(s, ""), []string{"a/1"})
}
