package state_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func TestTools(t *testing.T) {
	s := statetest.New(t)
	put := func(version, content string) state.Tools {
		t.Helper()
		sum, size, err := s.PutFile(t.Context(), strings.NewReader(content))
		check(t, err)
		kept := state.Tools{Name: version + "-" + sum[:8], SHA256: sum, Size: size}
		check(t, s.Update(t.Context(), func(tx *state.Tx) error {
			return errors.Join(tx.AddTools(kept), tx.SetTools(kept.Name))
		}))
		return kept
	}
	first, second, third := put("1.0", "one"), put("1.1", "two"), put("1.2", "three")
	check(t, s.Update(t.Context(), func(tx *state.Tx) error { return tx.SetMachineTools("0", first.Name) }))
	for range 2 { // the first round removes records, and the second removes blobs
		check(t, sweep.Run(t.Context(), s, time.Now().Add(2*keyspace.BlobGrace)))
	}
	got := statetest.Read(t, s, func(v *state.View) ([]state.Tools, error) { return v.AllTools() })
	if diff := cmp.Diff([]state.Tools{first, third}, got); diff != "" {
		t.Error(diff)
	}
	r, err := s.OpenBlob(t.Context(), first.SHA256)
	check(t, err)
	if data, err := io.ReadAll(r); err != nil || string(data) != "one" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := s.OpenBlob(t.Context(), second.SHA256); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("what nobody runs: %v", err)
	}
	err = s.Update(t.Context(), func(tx *state.Tx) error {
		return tx.AddTools(state.Tools{Name: "../1-" + first.SHA256[:8], SHA256: first.SHA256})
	})
	if err == nil {
		t.Error("a path was taken for a name")
	}
}

// TestSweepKeepsToolsOfDamagedMachines checks that a sweep removes no tools while the record of a machine, which
// may name them, does not decode.
func TestSweepKeepsToolsOfDamagedMachines(t *testing.T) {
	st := statetest.New(t)
	sum, size, err := st.PutFile(t.Context(), strings.NewReader("one"))
	check(t, err)
	kept := state.Tools{Name: "1.0-" + sum[:8], SHA256: sum, Size: size}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(tx.AddTools(kept), tx.Keys().Put(keys.Machine("7"), "no record"))
	})

	err = sweep.Run(t.Context(), st, time.Now())
	if err == nil || !strings.Contains(err.Error(), `cannot sweep tools: cannot decode "`+keys.Machine("7")+`"`) {
		t.Errorf("got %v", err)
	}
	got := statetest.Read(t, st, func(v *state.View) ([]state.Tools, error) { return v.AllTools() })
	if len(got) != 1 || got[0].Name != kept.Name {
		t.Errorf("%v are left", got)
	}
}
