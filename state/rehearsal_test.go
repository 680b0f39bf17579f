package state_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

// TestRehearse checks that only later updates of the same rehearsal see its writes, and that a failed update
// has no effect.
func TestRehearse(t *testing.T) {
	s := statetest.New(t)
	ctx := t.Context()
	machines := func(w state.Viewer) (ids []string) {
		t.Helper()
		all, err := state.Read(ctx, w, (*state.View).Machines)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		return ids
	}
	add := func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err }
	errRefused := errors.New("refused")

	err := s.Rehearse(ctx, func(r *state.Rehearsal) error {
		if err := r.Update(ctx, add); err != nil {
			return err
		}
		err := r.Update(ctx, func(tx *state.Tx) error {
			if err := add(tx); err != nil {
				return err
			}
			return errRefused
		})
		if !errors.Is(err, errRefused) {
			t.Errorf("error %v, want that of the function", err)
		}
		if diff := cmp.Diff([]string{"0", "1"}, machines(r)); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"0"}, machines(s)); diff != "" {
		t.Error(diff)
	}
}

// TestRehearseBlobs checks that a blob exists only in the rehearsal that has put it, and is not stored.
func TestRehearseBlobs(t *testing.T) {
	s := statetest.New(t)
	ctx := t.Context()
	for _, test := range []struct {
		name string
		put  func(r *state.Rehearsal, text string) (string, int64, error)
	}{
		{"as a whole", func(r *state.Rehearsal, text string) (string, int64, error) {
			return r.PutBlob(ctx, strings.NewReader(text))
		}},
		{"of a file", func(r *state.Rehearsal, text string) (string, int64, error) {
			return r.PutFile(ctx, strings.NewReader(text))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sum string
			err := s.Rehearse(ctx, func(r *state.Rehearsal) (err error) {
				var size int64
				if sum, size, err = test.put(r, "content "+test.name); err != nil {
					return err
				}
				if want := int64(len("content " + test.name)); size != want {
					t.Errorf("size %d, want %d", size, want)
				}
				return r.Update(ctx, func(tx *state.Tx) error {
					return tx.AddTools(state.Tools{Name: "1-" + sum[:8], SHA256: sum, Size: size})
				})
			})
			if err != nil {
				t.Error(err)
			}
			if content, err := s.OpenBlob(ctx, sum); !errors.Is(err, state.ErrNotFound) {
				if err == nil {
					data, _ := io.ReadAll(content)
					t.Errorf("the blob was stored: %q", data)
				} else {
					t.Error(err)
				}
			}
		})
	}
	err := s.Rehearse(ctx, func(r *state.Rehearsal) error {
		return r.Update(ctx, func(tx *state.Tx) error {
			return tx.AddTools(state.Tools{Name: "1-00000000", SHA256: strings.Repeat("0", 64), Size: 1})
		})
	})
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a blob that nobody put: error %v", err)
	}
}

// TestRehearseGuarded checks that a rehearsal refuses the same writes as the state.
func TestRehearseGuarded(t *testing.T) {
	s := statetest.New(t)
	ctx := t.Context()
	add := func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err }
	statetest.Update(t, s, func(tx *state.Tx) error {
		if _, _, err := tx.Keys().Get(keys.Moved); err != nil { // without this read, the guard refuses the write too
			return err
		}
		return tx.Keys().Put(keys.Moved, state.MovedRecord{To: "sqlite:/elsewhere"})
	})

	wanted := s.Update(ctx, add)
	rehearsed := s.Rehearse(ctx, func(r *state.Rehearsal) error { return r.Update(ctx, add) })
	if wanted == nil || rehearsed == nil || wanted.Error() != rehearsed.Error() {
		t.Errorf("the update: %v; the rehearsal: %v", wanted, rehearsed)
	}
}
