package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/gateway"
	"bijou/state/keyspace"
	"bijou/state/osutil"
	"bijou/state/store"
	storeremote "bijou/state/store/remote"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// blobWriter writes blobs through the socket of machine 1.
type blobWriter struct {
	*testing.T
	st     *state.State
	socket store.Store
}

func newBlobWriter(t *testing.T, st *state.State) *blobWriter {
	t.Helper()
	statetest.AddService(t, st, statetest.MySQL(), 1)
	u := statetest.Read(t, st, func(v *state.View) (state.Unit, error) { return v.Unit("mysql/0") })
	g, err := gateway.New(st.Store(), gateway.Table{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	e, err := g.Listen(gateway.Agent(u.Machine), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	socket, err := storeremote.Open(t.Context(), "bijou+unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &blobWriter{t, st, socket}
}

func (w *blobWriter) head(sum string, size int64, touched time.Time) error {
	w.Helper()
	value, err := json.Marshal(keyspace.BlobHead{Size: size, Touched: touched})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.socket.Commit(w.Context(), store.Txn{Ops: []store.Op{{Key: keyspace.BlobHeadsPrefix + sum, Value: value}}})
	return err
}

func (w *blobWriter) chunk(sum string, n int) error {
	op := store.Op{Key: keyspace.ChunkKey(sum, n), Value: []byte("x")}
	_, err := w.socket.Commit(w.Context(), store.Txn{Ops: []store.Op{op}})
	return err
}

func (w *blobWriter) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *blobWriter) isDenied(err error) {
	w.Helper()
	if !errors.Is(err, store.ErrDenied) {
		w.Errorf("got %v", err)
	}
}

// keys returns the keys of the blob, without the blob's sum.
func (w *blobWriter) keys(sum string) (all []string) {
	w.Helper()
	snap, err := w.st.Store().Snapshot(w.Context())
	w.must(err)
	defer snap.Close()
	for _, prefix := range []string{keyspace.BlobHeadsPrefix + sum, keyspace.BlobsPrefix + sum} {
		kvs, err := snap.List(w.Context(), prefix)
		w.must(err)
		for _, kv := range kvs {
			all = append(all, strings.Replace(kv.Key, sum, "SUM", 1))
		}
	}
	return all
}

// TestSweepTakesAllChunks checks that a sweep also removes the chunks beyond the last size in a blob's head.
func TestSweepTakesAllChunks(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w := newBlobWriter(t, st)
		sum := strings.Repeat("ab", 32)
		w.must(w.head(sum, 64<<20, time.Now()))
		for _, n := range []int{0, 5, 127} {
			w.must(w.chunk(sum, n))
		}
		w.must(w.head(sum, 0, time.Now()))

		w.must(sweep.Run(t.Context(), st, time.Now().Add(2*keyspace.BlobGrace)))
		if left := w.keys(sum); len(left) > 0 {
			t.Errorf("the sweep leaves %q", left)
		}
	})
}

// TestBlobsAreTouchedNow checks that an agent can neither protect a blob from sweeps forever nor cause an
// early sweep.
func TestBlobsAreTouchedNow(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w := newBlobWriter(t, st)
		sum := strings.Repeat("ab", 32)
		w.isDenied(w.head(sum, 1, time.Now().Add(time.Hour)))
		w.isDenied(w.head(sum, 1, time.Now().Add(-time.Hour)))
		w.isDenied(w.head(sum, 1, time.Time{}))
		w.must(w.head(sum, 1, time.Now().Add(5*time.Minute))) // with a clock that is ahead
		w.isDenied(w.head(sum, 1, time.Now().Add(-5*time.Minute)))
		w.must(w.head(sum, 1, time.Now()))
	})
}

// TestSweepTakesBlobsOfTheFuture checks that a blob is swept even if its last touch has the time of a clock
// that was far ahead.
func TestSweepTakesBlobsOfTheFuture(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w := newBlobWriter(t, st)
		sum := strings.Repeat("ab", 32)
		for _, c := range []struct {
			ahead time.Duration
			goes  bool
		}{{time.Hour, false}, {365 * 24 * time.Hour, true}} {
			value, _ := json.Marshal(keyspace.BlobHead{Size: 1, Touched: time.Now().Add(c.ahead)})
			_, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: keyspace.BlobHeadsPrefix + sum, Value: value}}})
			w.must(err)
			w.must(sweep.Run(t.Context(), st, time.Now()))
			if left := w.keys(sum); (len(left) == 0) != c.goes {
				t.Errorf("%v ahead: the sweep leaves %q", c.ahead, left)
			}
		}
	})
}

// TestNoChunkDuringASweep checks that no chunk can be written between the removal of a blob's chunks and the
// removal of its head.
func TestNoChunkDuringASweep(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w := newBlobWriter(t, st)
		sum := strings.Repeat("ab", 32)
		w.must(w.head(sum, 1, time.Now()))
		marked := store.Op{Key: keyspace.BlobHeadsPrefix + sum, Value: []byte(`{"size":1,"touched":"0001-01-01T00:00:00Z"}`)}
		_, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{marked}})
		w.must(err)

		w.isDenied(w.chunk(sum, 0))
		w.must(w.head(sum, 1, time.Now())) // a writer that continues stops the sweep
		w.must(w.chunk(sum, 0))
	})
}

// meddler is a store that replaces a chunk once, after a writer has written the chunk.
type meddler struct {
	store.Store
	meddle func()
}

func (m *meddler) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	revision, err := m.Store.Commit(ctx, txn)
	if len(txn.Ops) > 0 && strings.HasPrefix(txn.Ops[0].Key, keyspace.BlobsPrefix) && m.meddle != nil {
		meddle := m.meddle
		m.meddle = nil
		meddle()
	}
	return revision, err
}

// TestWrongChunkUnderAKnownSum checks that a writer can store a blob even if another machine knows the sum,
// and writes a wrong size and a wrong chunk before or during that.
func TestWrongChunkUnderAKnownSum(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		w := newBlobWriter(t, st)
		for name, data := range map[string]string{
			"one chunk":   strings.Repeat("a", 1000),
			"many chunks": strings.Repeat("b", 2*keyspace.ChunkSize+1),
		} {
			sum := osutil.Digest([]byte(data))
			w.must(w.head(sum, 1, time.Now()))
			w.must(w.chunk(sum, 0))

			m := &meddler{Store: w.socket}
			m.meddle = func() {
				if err := w.chunk(sum, 0); len(data) < keyspace.ChunkSize {
					w.isDenied(err) // the blob is complete
				} else {
					w.must(err)
				}
			}
			writer := keyspace.New(m, nil)
			if _, _, err := writer.PutBlob(t.Context(), strings.NewReader(data)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if m.meddle != nil {
				t.Errorf("%s: nothing was put", name)
			}

			blob, err := st.OpenBlob(t.Context(), sum)
			w.must(err)
			got, err := io.ReadAll(blob)
			w.must(err)
			if string(got) != data {
				t.Errorf("%s: got %d other bytes", name, len(got))
			}
		}
	})
}
