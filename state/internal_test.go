package state

import (
	"errors"
	"strings"
	"testing"

	"bijou/state/keys"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

func testEnvironment() Environment {
	return Environment{Name: "test", UUID: "u", Provider: ProviderLocal, DefaultSeries: "jammy"}
}

func TestCompactedPassesThrough(t *testing.T) {
	s, err := CreateIn(t.Context(), memstore.New(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	memstore.Compact(s.Store(), 1)
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
		"none":  {"", "the store does not contain a bijou model"},
		"newer": {`{"format":2}`, "the state has format 2"},
	} {
		s := OpenIn(memstore.New())
		if test.value != "" {
			op := store.Op{Key: keys.Format, Value: []byte(test.value)}
			if _, err := s.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		err := s.View(t.Context(), CheckFormat)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSettingsWhoseBlobIsMissingAreDamagedNotAbsent(t *testing.T) {
	s, err := CreateIn(t.Context(), memstore.New(), testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *Tx) error {
		return tx.keys.Put(keys.Settings(0, "app/0"), settingsDoc{Version: 1, Blob: strings.Repeat("0", 64)})
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
