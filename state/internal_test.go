package state

import (
	"errors"
	"strings"
	"testing"

	"bijou/state/store"
	"bijou/state/store/mem"
)

func testEnvironment() Environment {
	return Environment{Name: "test", UUID: "u", Provider: ProviderLocal, DefaultSeries: "jammy"}
}

func TestCompactedPassesThrough(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	mem.Compact(s.store, 1)
	w, err := s.Watch(t.Context(), 0, WatchAll())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, ErrHistoryLost) {
		t.Errorf("got %v", err)
	}
}

func TestFormatIsChecked(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"none":  {"", "it holds no bijou environment"},
		"newer": {`{"format":2}`, "its format is 2, and this bijou knows 1 only"},
	} {
		s := &State{store: mem.New()}
		if test.value != "" {
			op := store.Op{Key: formatKey, Value: []byte(test.value)}
			if _, err := s.store.Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		err := s.View(t.Context(), checkFormat)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedBlobIsNotHandedOutAsWhole(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]store.Op{
		"changed": {Key: chunkKey(sum, 0), Value: []byte("chasm")},
		"short":   {Key: chunkKey(sum, 0), Value: []byte("cha")},
		"missing": {Key: chunkKey(sum, 0), Delete: true},
	} {
		if _, err := s.store.Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
		err := s.View(t.Context(), func(v *View) error { _, err := v.readBlob(sum); return err })
		if err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// A lease that the store has ended, while its process thinks otherwise.
func TestExpiredLeaseIsALostSession(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	session, err := s.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	if err := session.Announce(t.Context(), s.Update, "machine-0"); err != nil {
		t.Fatal(err)
	}
	mem.Expire(s.store, session.lease.ID())
	if err := session.Announce(t.Context(), s.Update, "machine-0"); !errors.Is(err, ErrSessionLost) {
		t.Errorf("announce: %v", err)
	}
	<-session.Done()
}

// A blob that was swept between its PutBlob and the commit that refers to it.
func TestReferenceToASweptBlob(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		if err := tx.referToBlob(sum); err != nil {
			return err
		}
		head, err := s.readBlobHead(t.Context(), sum)
		if err == nil && head.Complete {
			err = s.removeBlob(t.Context(), sum, head)
		}
		if err != nil {
			return err
		}
		return tx.put("charms/x", 1)
	})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A sweep and a commit that refers to the blob at the same moment: one fails.
func TestSweepMeetsAReference(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	sum, _, err := s.PutBlob(t.Context(), strings.NewReader("charm"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.readBlobHead(t.Context(), sum) // as the sweep reads it
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		if err := tx.referToBlob(sum); err != nil {
			return err
		}
		return tx.put("charms/x", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.removeBlob(t.Context(), sum, head); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the sweep: %v", err)
	}
	if err := s.View(t.Context(), func(v *View) error { _, err := v.readBlob(sum); return err }); err != nil {
		t.Errorf("the blob: %v", err)
	}
}

func TestSettingsWhoseBlobIsMissingAreDamagedNotAbsent(t *testing.T) {
	s, err := CreateMemory(t.Context(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		return tx.put(settingsKey(0, "app/0"), settingsDoc{Version: 1, Blob: hexSHA256([]byte("gone"))})
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(v *View) error {
		_, err := v.Settings(0, "app/0")
		return err
	})
	if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}
