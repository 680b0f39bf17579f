package keyspace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bijou/state/osutil"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

func TestDamagedBlobIsNotHandedOutAsWhole(t *testing.T) {
	s := New(memstore.New(), nil)
	defer s.Close()
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]store.Op{
		"changed": {Key: ChunkKey(sum, 0), Value: []byte("chasm")},
		"short":   {Key: ChunkKey(sum, 0), Value: []byte("cha")},
		"missing": {Key: ChunkKey(sum, 0), Delete: true},
	} {
		if _, err := s.store.Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
		err := s.View(t.Context(), func(v *View) error { _, err := v.ReadBlob(sum); return err })
		if err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// TestBlobBegunWithAnotherSize checks that a blob is stored whole even if another writer has begun it with a
// wrong size, and has marked it as complete.
func TestBlobBegunWithAnotherSize(t *testing.T) {
	data := strings.Repeat("x", ChunkSize+1)
	for _, complete := range []bool{false, true} {
		s := New(memstore.New(), nil)
		defer s.Close()
		sum := osutil.Digest([]byte(data))
		err := s.Update(t.Context(), func(tx *Tx) error {
			return tx.Put(BlobHeadsPrefix+sum, BlobHead{Size: 1, Complete: complete, Touched: time.Now().UTC()})
		})
		if err != nil {
			t.Fatal(err)
		}

		if _, _, err := s.PutBlob(t.Context(), strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), s, func(v *View) ([]byte, error) { return v.ReadBlob(sum) })
		if err != nil || string(got) != data {
			t.Errorf("complete %t: %d bytes, %v", complete, len(got), err)
		}
	}
}

// TestExpiredLeaseIsALostSession checks a lease that the store has ended without the knowledge of its
// process.
func TestExpiredLeaseIsALostSession(t *testing.T) {
	s := New(memstore.New(), nil)
	defer s.Close()
	session, err := s.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	write := func(tx *Tx) error { return tx.PutLeased("presence/x", session.NewPresence(""), session) }
	if err := s.Update(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	memstore.Expire(s.store, session.lease.ID())
	if err := s.Update(t.Context(), write); !errors.Is(err, ErrSessionLost) {
		t.Errorf("update: %v", err)
	}
	<-session.Done()
}

// TestReferenceToASweptBlob checks a commit that refers to a blob that was swept after PutBlob.
func TestReferenceToASweptBlob(t *testing.T) {
	s := New(memstore.New(), nil)
	defer s.Close()
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		if err := tx.ReferToBlob(sum); err != nil {
			return err
		}
		head, err := s.readBlobHead(t.Context(), sum)
		if err == nil && head.Complete {
			err = s.RemoveBlob(t.Context(), sum, head)
		}
		if err != nil {
			return err
		}
		return tx.Put("charms/x", 1)
	})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestSweepMeetsAReference checks that either a sweep or a commit fails if the commit refers to a blob
// that is swept at the same moment.
func TestSweepMeetsAReference(t *testing.T) {
	s := New(memstore.New(), nil)
	defer s.Close()
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	// Like this, a sweep reads the head before it removes the blob.
	head, err := s.readBlobHead(t.Context(), sum)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		if err := tx.ReferToBlob(sum); err != nil {
			return err
		}
		return tx.Put("charms/x", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveBlob(t.Context(), sum, head); !errors.Is(err, ErrConflict) {
		t.Errorf("the sweep: %v", err)
	}
	if err := s.View(t.Context(), func(v *View) error { _, err := v.ReadBlob(sum); return err }); err != nil {
		t.Errorf("the blob: %v", err)
	}
}
