package copying

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/statetest"
)

// dumpStore reads all keys of a store, including blobs.
func dumpStore(t *testing.T, st store.Store) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := state.OpenIn(st).View(t.Context(), func(v *state.View) error {
		kvs, err := v.Keys().List("")
		for _, kv := range kvs {
			found[kv.Key] = string(kv.Value)
		}
		return err
	})
	check(t, err)
	return found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newPopulated returns an environment with blobs of several chunks, and with keys of all sizes around the
// size of a batch.
func newPopulated(t *testing.T) *state.State {
	t.Helper()
	s, err := state.CreateIn(t.Context(), memstore.New(), statetest.Environment())
	check(t, err)
	for i := range 3 {
		_, _, err := s.PutBlob(t.Context(), bytes.NewReader(bytes.Repeat([]byte{byte(i)}, i*keyspace.ChunkSize+i)))
		check(t, err)
	}
	for i := range 5 {
		check(t, s.Update(t.Context(), func(tx *state.Tx) error {
			for n := range 90 {
				if err := tx.Keys().Put(fmt.Sprintf("units/u/%d", i*90+n), strings.Repeat("x", n*40)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return s
}

// failingStore is a store whose n-th commit and all later commits fail, either before or after they are
// carried out.
type failingStore struct {
	store.Store
	left  int
	after bool
}

var errCut = errors.New("cut off")

func (c *failingStore) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	c.left--
	if c.left < 0 {
		return 0, errCut
	}
	revision, err := c.Store.Commit(ctx, txn)
	if c.left == 0 && c.after {
		return 0, errCut
	}
	return revision, err
}

// migrateStores is Migrate between open stores.
func migrateStores(ctx context.Context, m Migration, from, to store.Store) (CopySummary, error) {
	source, err := lockSource(ctx, from, m.To)
	if err != nil {
		return CopySummary{}, err
	}
	c, err := source.moveTo(ctx, m, to)
	return c, errors.Join(err, source.release(ctx))
}

// TestMigrateCutOff interrupts a migration at each of its commits. At each moment the environment must be
// complete in one place, and the next migration must succeed.
func TestMigrateCutOff(t *testing.T) {
	ctx := t.Context()
	for n := 0; ; n++ {
		s, to := newPopulated(t), memstore.New()
		want := dumpStore(t, s.Store())
		switched := false
		m := Migration{From: "mem:from", To: "mem:to", Switch: func() error { switched = true; return nil }}
		first := &failingStore{memstore.Share(to), n, n%2 == 0}
		_, err := migrateStores(ctx, m, memstore.Share(s.Store()), first)
		if err == nil {
			if first.left < 1 {
				t.Error("it was cut off and has not noticed")
			}
			return
		}
		checkIs(t, err, errCut)
		target := state.OpenIn(to)
		want = withoutStoreLocal(want)
		copied := withoutStoreLocal(dumpStore(t, to))
		copied[keys.Format] = want[keys.Format] // copied last
		if moved := dumpStore(t, s.Store())[keys.Moved] != ""; switched || moved && !cmp.Equal(want, copied) {
			t.Errorf("after %d commits: switched %t, and the copy is not whole", n, switched)
		}
		if err := target.View(ctx, state.CheckFormat); n > 1 && !errors.Is(err, state.ErrFormat) && dumpStore(t, s.Store())[keys.Moved] == "" {
			t.Errorf("after %d commits half a copy passes for an environment: %v", n, err)
		}
		_, err = migrateStores(ctx, m, memstore.Share(s.Store()), to)
		check(t, err)
		if diff := cmp.Diff(want, withoutStoreLocal(dumpStore(t, to))); diff != "" || !switched {
			t.Fatalf("after %d commits: switched %t\n%s", n, switched, diff[:min(len(diff), 500)])
		}
		check(t, target.View(ctx, state.CheckFormat))
		checkIs(t, s.View(ctx, state.CheckFormat), state.ErrMoved)
	}
}

// withoutStoreLocal removes the keys that are not copied.
func withoutStoreLocal(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		if !isStoreLocal(key) || key == keys.Format {
			kept[key] = value
		}
	}
	return kept
}

func checkIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// TestMigrateWhileOthersWrite changes the environment while it is copied. Committed changes must be copied,
// and no commit may succeed after the move.
func TestMigrateWhileOthersWrite(t *testing.T) {
	ctx := t.Context()
	s, to := newPopulated(t), memstore.New()
	put := func(key string) error {
		return s.Update(ctx, func(tx *state.Tx) error { return tx.Keys().Put(key, 1) })
	}
	rounds := 0
	m := Migration{From: "mem:from", To: "mem:to", Switch: func() error { return nil }, Fault: func(string) {
		if rounds++; rounds < 4 {
			check(t, put(fmt.Sprintf("services/late-%d", rounds)))
		}
	}}
	_, err := migrateStores(ctx, m, memstore.Share(s.Store()), to)
	check(t, err)
	if got := dumpStore(t, to); got["services/late-1"] != "1" || got["services/late-3"] != "1" {
		t.Error("what was written meanwhile was lost")
	}
	checkIs(t, put("services/too-late"), state.ErrMoved)
	checkIs(t, put("services/too-late"), state.ErrStoreGone)
}

// TestMigrateRefuses checks that a migration that would lose data is refused.
func TestMigrateRefuses(t *testing.T) { synctest.Test(t, migrateRefuses) }

func migrateRefuses(t *testing.T) {
	ctx := t.Context()
	m := Migration{From: "mem:from", To: "mem:to", Switch: func() error { return nil }}
	s, to := newPopulated(t), memstore.New()
	session, err := s.NewSession(ctx)
	check(t, err)
	check(t, state.Announce(ctx, session, s.Update, "machine-0"))
	_, err = migrateStores(ctx, m, s.Store(), to)
	checkIs(t, err, state.ErrRunning)
	if !strings.Contains(err.Error(), "agent machine-0 (process ") {
		t.Errorf("got %v", err)
	}
	check(t, session.Close(ctx))

	_, err = migrateStores(ctx, m, s.Store(), memstore.Share(s.Store()))
	checkIs(t, err, state.ErrStoreExists)
	other := newPopulated(t)
	_, err = migrateStores(ctx, m, s.Store(), other.Store())
	checkIs(t, err, state.ErrStoreExists)
	foreign := memstore.New()
	_, err = foreign.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "neco/status", Value: []byte("1")}}})
	check(t, err)
	_, err = migrateStores(ctx, m, s.Store(), foreign)
	checkIs(t, err, state.ErrStoreExists)
	_, err = migrateStores(ctx, m, s.Store(), &failingStore{memstore.Share(to), 2, false})
	checkIs(t, err, errCut)
	env := statetest.Environment()
	env.UUID = "another"
	_, err = state.CreateIn(ctx, to, env)
	// bootstrap must not change an incomplete copy.
	checkIs(t, err, state.ErrFormat)
	_, err = migrateStores(ctx, m, other.Store(), to)
	// A migration of the same environment continues the interrupted one.
	check(t, err)

	// During a migration no agent and no other migration may begin.
	held, err := lockSource(ctx, s.Store(), "mem:x")
	check(t, err)
	session, err = s.NewSession(ctx)
	check(t, err)
	checkIs(t, state.Announce(ctx, session, s.Update, "machine-0"), state.ErrRunning)
	_, err = state.Campaign(ctx, session, "provisioner")
	checkIs(t, err, state.ErrRunning)
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = lockSource(brief, s.Store(), "mem:y")
	checkIs(t, err, state.ErrRunning)
	check(t, held.release(ctx))
	check(t, state.Announce(ctx, session, s.Update, "machine-0"))
}

// emptySum is the sha256 of nothing.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestMigrateBack migrates an environment back to its first store, which still exists.
func TestMigrateBack(t *testing.T) {
	ctx := t.Context()
	s, to := newPopulated(t), memstore.New()
	m := Migration{From: "mem:from", To: "mem:to", Keep: true, Switch: func() error { return nil }}
	_, err := migrateStores(ctx, m, s.Store(), to)
	check(t, err)
	check(t, m.finishMove(ctx, to))
	moved := state.OpenIn(to)
	check(t, moved.Update(ctx, func(tx *state.Tx) error {
		tx.Keys().Remove("units/u/7")
		return tx.Keys().Put("units/u/new", 1)
	}))
	head, err := state.Read(ctx, moved, func(v *state.View) (keyspace.BlobHead, error) { return v.Keys().BlobHead(emptySum) })
	check(t, err)
	check(t, moved.Keys().RemoveBlob(ctx, emptySum, head))
	want := withoutStoreLocal(dumpStore(t, to))
	m.From, m.To = m.To, m.From
	_, err = migrateStores(ctx, m, to, s.Store())
	check(t, err)
	if diff := cmp.Diff(want, withoutStoreLocal(dumpStore(t, s.Store()))); diff != "" {
		t.Error(diff)
	}
	check(t, s.View(ctx, state.CheckFormat))
	checkIs(t, moved.View(ctx, state.CheckFormat), state.ErrMoved)
}

// TestRewriteKeepsWhatItDoesNotKnow checks records in a newer binary's backup.
func TestRewriteKeepsWhatItDoesNotKnow(t *testing.T) {
	const was = `{"series":"noble","life":"alive","future":[1],"instance-id":"i-1","status":"running","addresses":{"private":"a","future":2}}`
	got, err := rewriteRecord(keyspace.KeyValue{Key: keys.Machine("0"), Value: []byte(was)}, func(m *state.Machine) { holdWithoutInstance("0", m) })
	check(t, err)
	want := `{"series":"noble","life":"alive","instance-id":"i-1","status":"pending","future":[1],"addresses":{"future":2}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
