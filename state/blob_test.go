package state_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/keyspace"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func TestBlobs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		for _, size := range []int{0, 1, 512 << 10, 512<<10 + 1, 3 << 20} {
			data := bytes.Repeat([]byte("bijou,"), size/6+1)[:size]
			sum := sha256.Sum256(data)
			got, n, err := st.PutBlob(t.Context(), bytes.NewReader(data))
			if err != nil || got != hex.EncodeToString(sum[:]) || n != int64(size) {
				t.Fatalf("%d bytes: %s, %d, %v", size, got, n, err)
			}
			r, err := st.OpenBlob(t.Context(), got)
			if err != nil {
				t.Fatal(err)
			}
			back, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(back, data) {
				t.Errorf("%d bytes: read %d, %v", size, len(back), err)
			}
			r.Close()
		}
	})
}

func TestBlobIsRefused(t *testing.T) {
	st := statetest.New(t)
	if _, _, err := st.PutBlob(t.Context(), io.LimitReader(zeros{}, keyspace.MaxBlob+1)); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("too large: %v", err)
	}
	if _, err := st.OpenBlob(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("not there: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestSameBlobFromSeveralWriters(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		data := bytes.Repeat([]byte("x"), 2<<20)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, _, err := st.PutBlob(t.Context(), bytes.NewReader(data)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestSweepTakesUnreferencedBlobs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		c := statetest.AddCharm(t, st, statetest.MySQL())
		statetest.AddServiceOf(t, st, c, "mysql", 0) // a charm that no unit runs is removed too
		stray, _, err := st.PutBlob(t.Context(), strings.NewReader("stray"))
		if err != nil {
			t.Fatal(err)
		}
		there := func(sum string) bool {
			_, err := st.OpenBlob(t.Context(), sum)
			return err == nil
		}
		if err := sweep.Run(t.Context(), st, time.Now()); err != nil || !there(stray) {
			t.Fatalf("a fresh blob was swept: %v", err)
		}
		if err := sweep.Run(t.Context(), st, later()); err != nil {
			t.Fatal(err)
		}
		if there(stray) || !there(c.SHA256) {
			t.Errorf("stray is there: %v; the charm: %v", there(stray), there(c.SHA256))
		}
		again, _, err := st.PutBlob(t.Context(), strings.NewReader("stray"))
		if err != nil || !there(again) {
			t.Errorf("it cannot be put again: %v", err)
		}
	})
}

func TestCharmWithoutItsArchiveIsRefused(t *testing.T) {
	st := statetest.New(t)
	c := statetest.AddCharm(t, st, statetest.MySQL())
	c.URL.Revision, c.SHA256 = 9, strings.Repeat("0", 64)
	if err := st.Update(t.Context(), func(tx *state.Tx) error { return tx.AddCharm(c) }); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	c.URL.Revision = 3
	if err := st.Update(t.Context(), func(tx *state.Tx) error { return tx.AddCharm(c) }); !errors.Is(err, state.ErrRevisionTaken) {
		t.Errorf("got %v", err)
	}
}

// changing is a file to which a writer writes while it is read.
type changing struct{ reads int }

func (c *changing) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	const size = 10
	n := min(len(p), max(0, int(size-off)))
	for i := range n {
		p[i] = byte(c.reads)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestFileThatChangesIsRefused(t *testing.T) {
	st := statetest.New(t)
	_, _, err := st.PutFile(context.Background(), &changing{})
	if err == nil || !strings.Contains(err.Error(), "the content changed while it was read") {
		t.Errorf("error %v", err)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestFileIsBounded(t *testing.T) {
	st := statetest.New(t)
	_, _, err := st.PutFile(context.Background(), endless{})
	if err == nil || !strings.Contains(err.Error(), "more than 512 MiB") {
		t.Errorf("error %v", err)
	}
}
