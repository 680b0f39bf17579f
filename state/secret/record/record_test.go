package record_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/keyspace"
	"bijou/state/secret"
	"bijou/state/secret/record"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/statetest"
)

// chunkReads is a store that counts the reads of a blob's chunks.
type chunkReads struct {
	store.Store
	n int
}

type countedSnapshot struct {
	store.Snapshot
	of *chunkReads
}

func (s *chunkReads) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	return &countedSnapshot{snap, s}, err
}

func (s *countedSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if strings.HasPrefix(key, keyspace.BlobsPrefix) {
		s.of.n++
	}
	return s.Snapshot.Get(ctx, key)
}

// TestOpenReadsBlobOnce checks that large content is read from the store only once.
func TestOpenReadsBlobOnce(t *testing.T) {
	reads := &chunkReads{Store: memstore.New()}
	st, err := state.CreateIn(t.Context(), reads, statetest.Environment())
	if err != nil {
		t.Fatal(err)
	}

	ring := secret.Keyring{secret.NewKey()}
	r := secret.Record{ID: "large", Origin: "u"}
	r.AddRevision(time.Now())
	large := bytes.Repeat([]byte("x"), 100<<10)
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(record.PutContent(tx, ring, r, secret.Content{"key": large}), record.Put(tx, r))
	})

	reads.n = 0
	got := statetest.Read(t, st, func(v *state.View) (secret.Content, error) { return record.Open(v, ring, r, 1) })
	if !bytes.Equal(got["key"], large) || reads.n != 1 {
		t.Errorf("read %d bytes with %d reads of chunks, want %d bytes with one", len(got["key"]), reads.n, len(large))
	}
}
