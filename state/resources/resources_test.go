package resources_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/keyspace"
	"bijou/state/resources"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

var noon = time.Date(2014, 6, 1, 12, 0, 0, 0, time.UTC)

// give stores a file as a resource of a service.
func give(t *testing.T, st *state.State, service, name string, data []byte) (r resources.Resource, err error) {
	t.Helper()
	sum, size, err := st.PutFile(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) (err error) {
		r, err = resources.Put(tx, service, resources.Resource{Name: name, SHA256: sum, Size: size, Added: noon})
		return err
	})
	return r, err
}

func TestResources(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.Actor(), 1)
		big := make([]byte, 3<<20+17)
		rand.New(rand.NewSource(1)).Read(big)
		for i, data := range [][]byte{[]byte("one"), {}, big} {
			r, err := give(t, st, "actor", "site", data)
			if err != nil || r.Version != i+1 || r.File != "site.zip" || r.Size != int64(len(data)) {
				t.Fatalf("%d: %+v, %v", i, r, err)
			}
			if got := content(t, st, r.SHA256); !bytes.Equal(got, data) {
				t.Errorf("%d: %d bytes came back", i, len(got))
			}
		}
		if r, err := give(t, st, "actor", "site", big); err != nil || r.Version != 3 {
			t.Errorf("the same again: %+v, %v", r, err)
		}
		if _, err := give(t, st, "actor", "other", nil); !errors.Is(err, state.ErrNotFound) || !strings.Contains(err.Error(), "it has site") {
			t.Errorf("one that the charm does not have: %v", err)
		}
		if _, err := give(t, st, "nosuch", "site", nil); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("no such service: %v", err)
		}
	})
}

func content(t *testing.T, st *state.State, sum string) []byte {
	t.Helper()
	r, err := st.OpenBlob(t.Context(), sum)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestResourcesGoWithTheirService(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	r, err := give(t, st, "actor", "site", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.DestroyService(t.Context(), "actor"); err != nil {
		t.Fatal(err)
	}
	if err := state.RemoveUnit(t.Context(), st.Update, "actor/0"); err != nil {
		t.Fatal(err)
	}
	if all := statetest.Read(t, st, func(v *state.View) ([]resources.Resource, error) { return resources.List(v, "actor") }); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	if err := sweep.Run(t.Context(), st, time.Now().Add(keyspace.BlobGrace+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.OpenBlob(t.Context(), r.SHA256); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the blob: %v", err)
	}
}

func TestSweepKeepsBlobsOfResourcesAndActions(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.Actor(), 1)
	r, err := give(t, st, "actor", "site", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	var a actions.Action
	statetest.Update(t, st, func(tx *state.Tx) (err error) {
		a, err = actions.Add(tx, actions.Action{Unit: "actor/0", Name: "backup"}, noon)
		return err
	})
	end := actions.Outcome{Output: actions.Output{Stdout: bytes.Repeat([]byte("x"), 100_000)}}
	statetest.Update(t, st, func(tx *state.Tx) error { return actions.End(tx, a.ID, actions.Completed, end, noon) })
	a = statetest.Read(t, st, func(v *state.View) (actions.Action, error) { return actions.Get(v, a.ID) })
	if err := sweep.Run(t.Context(), st, time.Now().Add(keyspace.BlobGrace+time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, sum := range []string{r.SHA256, a.Output.Blob} {
		if len(content(t, st, sum)) == 0 {
			t.Errorf("blob %q is gone", sum)
		}
	}
}
