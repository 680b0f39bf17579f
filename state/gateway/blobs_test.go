package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/fakes/memstore"
)

// chunkStore is a store that records the reads of blobs' chunks by its snapshots.
type chunkStore struct {
	store.Store
	store.LeaseGranter
	reading, most atomic.Int64

	mu         sync.Mutex
	prefetched []string
}

type chunkSnapshot struct {
	store.Snapshot
	of   *chunkStore
	once sync.Once
}

func (s *chunkStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	return &chunkSnapshot{Snapshot: snap, of: s}, err
}

// Get counts the open snapshots that have read a chunk.
func (s *chunkSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if strings.HasPrefix(key, "blobs/") {
		s.once.Do(func() { s.of.most.Store(max(s.of.most.Load(), s.of.reading.Add(1))) })
	}
	return s.Snapshot.Get(ctx, key)
}

func (s *chunkSnapshot) Prefetch(ctx context.Context, next store.Scope) error {
	s.of.mu.Lock()
	s.of.prefetched = append(s.of.prefetched, next.Keys...)
	s.of.mu.Unlock()
	return s.Snapshot.Prefetch(ctx, next)
}

func (s *chunkSnapshot) Close() {
	began := true
	s.once.Do(func() { began = false })
	if began {
		s.of.reading.Add(-1)
	}
	s.Snapshot.Close()
}

// blobWorld has machine 1's socket, and a blob that has all its chunks but a different sum.
func blobWorld(t *testing.T) (w *world, of *chunkStore, s store.Store, sum string) {
	t.Helper()
	base := memstore.New()
	w = &world{T: t, base: base, dir: t.TempDir()}
	t.Cleanup(func() { base.Close() })
	of = &chunkStore{Store: base, LeaseGranter: base.(store.LeaseGranter)}
	g, err := gateway.New(of, gateway.Table{})
	w.ok(err)
	socket := filepath.Join(w.dir, "socket")
	e, err := g.Listen(gateway.Agent("1"), socket)
	w.ok(err)
	t.Cleanup(e.Close)
	s, err = remote.Open(t.Context(), "bijou+unix://"+socket)
	w.ok(err)
	t.Cleanup(func() { s.Close() })

	sum = strings.Repeat("0", 64)
	w.put("machines/1", `{"life":"alive"}`, "blob-heads/"+sum, fmt.Sprintf(`{"size":%d}`, 4<<20))
	for n := range 8 {
		w.put(fmt.Sprintf("blobs/%s/%04d", sum, n), strings.Repeat("x", 512<<10))
	}
	return w, of, s, sum
}

// headOp returns the operation that writes the head of the blob.
func headOp(sum, more string) store.Op {
	touched := time.Now().UTC().Format(time.RFC3339Nano)
	return store.Op{Key: "blob-heads/" + sum, Value: fmt.Appendf(nil, `{"size":%d,%s"touched":%q}`, 4<<20, more, touched)}
}

// TestOneCompletionAtATime checks that the gateway handles only one request at a time of a machine to
// complete a large blob.
func TestOneCompletionAtATime(t *testing.T) {
	w, of, s, sum := blobWorld(t)
	done := headOp(sum, `"complete":true,`)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{done}}); !errors.Is(err, store.ErrDenied) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	w.equal(of.most.Load(), int64(1))
}

// TestChunksAreNotPrefetched checks that the gateway does not load many chunks at the same time because one
// request names them.
func TestChunksAreNotPrefetched(t *testing.T) {
	w, of, s, sum := blobWorld(t)
	var conds []store.Cond
	for n := range 8 {
		key := fmt.Sprintf("blobs/%s/%04d", sum, n)
		conds = append(conds, store.Cond{Key: key, Revision: w.put(key, strings.Repeat("x", 512<<10))})
	}
	_, err := s.Commit(t.Context(), store.Txn{Conds: conds, Ops: []store.Op{headOp(sum, "")}})
	w.ok(err)

	snap, err := s.Snapshot(t.Context())
	w.ok(err)
	defer snap.Close()
	w.ok(snap.Prefetch(t.Context(), store.Exactly("machines/1", conds[0].Key, conds[1].Key)))
	_, ok, err := snap.Get(t.Context(), conds[1].Key)
	w.ok(err)
	w.equal(ok, true)
	if i := slices.IndexFunc(of.prefetched, func(key string) bool { return strings.HasPrefix(key, "blobs/") }); i >= 0 {
		t.Errorf("%s is prefetched", of.prefetched[i])
	}
	w.equal(slices.Contains(of.prefetched, "machines/1"), true)
}
