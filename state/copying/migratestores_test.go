package copying_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/copying"
	"bijou/state/keyspace"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// TestMigrateThousandUnits migrates an environment with a thousand related units from SQLite to etcd and
// back. Each migration is interrupted repeatedly. All keys must be copied unchanged.
func TestMigrateThousandUnits(t *testing.T) {
	need.Whole(t)
	etcdtest.Need(t)
	if testing.Short() {
		t.Skip("it is long")
	}
	file := "sqlite:" + filepath.Join(t.TempDir(), "state.db")
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/moved")
	thousand(t, file)
	want, err := copying.Everything(t.Context(), file)
	check(t, err)
	for _, way := range [][2]string{{file, cluster}, {cluster, file}} {
		m := copying.Migration{From: way[0], To: way[1], Switch: func() error { return nil }}
		for n := range 4 {
			// The last interruption happens during the comparison.
			interrupt(t, m, (n+1)*len(want)/4+3)
		}
		began := time.Now()
		copied, err := copying.Migrate(t.Context(), m)
		check(t, err)
		t.Logf("%d keys, %d bytes in %v", copied.Keys, copied.Bytes, time.Since(began).Round(time.Millisecond))
		got, err := copying.Everything(t.Context(), way[1])
		check(t, err)
		if !cmp.Equal(want, got) {
			t.Fatalf("%d keys have arrived of %d, or other ones", len(got), len(want))
		}
		if _, err := state.Open(t.Context(), way[0]); !errors.Is(err, state.ErrNoStore) {
			t.Errorf("the old store: %v", err)
		}
	}
}

// interrupt starts the migration and cancels it after the given number of reports of progress.
func interrupt(t *testing.T, m copying.Migration, reports int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.Progress = func(keyspace.Steps) {
		if reports--; reports == 0 {
			cancel()
		}
	}
	_, err := copying.Migrate(ctx, m)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	s, err := state.Open(t.Context(), m.From)
	// The old store is still the current one.
	check(t, err)
	check(t, s.Close())
	if _, err := state.Open(t.Context(), m.To); !errors.Is(err, state.ErrFormat) {
		t.Fatalf("half a copy: %v", err)
	}
}

// thousand creates an environment with a thousand units.
func thousand(t *testing.T, url string) {
	t.Helper()
	ctx := t.Context()
	check(t, state.Create(ctx, url, state.Environment{Name: "e", UUID: "u", Provider: state.ProviderLocal, DefaultSeries: "noble"}))
	s, err := state.Open(ctx, url)
	check(t, err)
	defer s.Close()
	c := statetest.AddCharm(t, s, statetest.MySQL())
	check(t, s.Update(ctx, func(tx *state.Tx) error {
		_, err := tx.AddService(state.Service{Name: "mysql", Charm: c.URL.String()}, nil)
		return err
	}))
	units, err := s.AddUnits(ctx, "mysql", 1000, state.Placement{})
	check(t, err)
	_, _, err = s.PutBlob(ctx, bytes.NewReader(bytes.Repeat([]byte("resource"), 1<<20)))
	check(t, err)
	for batch := range 50 {
		check(t, s.Update(ctx, func(tx *state.Tx) error {
			for _, unit := range units[batch*20 : batch*20+20] {
				settings := map[string]string{"private-address": "10.0.0.1", "n": fmt.Sprint(unit.Number)}
				err := errors.Join(tx.EnterRelation(0, unit.Name, settings), tx.PutWorkflow(unit.Name, state.Workflow{State: "started"}))
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
