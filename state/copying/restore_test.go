package copying

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/backupfile"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/testscripts/kit/statetest"
)

// newWithHistory returns an environment with units, a dying relation that has one of them as a member, a
// running action, a blob of several chunks, and the records that running agents write.
func newWithHistory(t *testing.T) *state.State {
	t.Helper()
	s, err := state.CreateIn(t.Context(), memstore.New(), statetest.Environment())
	check(t, err)
	sum, _, err := s.PutBlob(t.Context(), bytes.NewReader(bytes.Repeat([]byte("blob"), keyspace.ChunkSize)))
	check(t, err)
	_, _, err = s.PutBlob(t.Context(), strings.NewReader("nobody refers to it"))
	check(t, err)
	check(t, s.Update(t.Context(), func(tx *state.Tx) error {
		docs := map[string]any{
			"services/mysql":                  state.Service{Charm: "local:noble/mysql-1", Life: state.Alive},
			"services/mysql/leader-settings":  map[string]any{"version": 3, "blob": sum},
			"counters/units/mysql":            2,
			"counters/machines":               3,
			"units/mysql/0":                   state.Unit{Machine: "0", Charm: "local:noble/mysql-1", Life: state.Alive, Resolved: state.ResolvedRetry},
			"units/mysql/0/state":             map[string]int{"version": 1},
			"units/mysql/0/actions":           map[string][]int{"waiting": {0, 1}},
			"units/mysql/1":                   state.Unit{Machine: "2", Charm: "local:noble/mysql-1", Life: state.Alive},
			"actions/0":                       actions.Action{Unit: "mysql/0", Status: actions.Running},
			"actions/1":                       actions.Action{Unit: "mysql/0", Status: actions.Pending},
			"machines/2":                      state.Machine{Life: state.Alive, InstanceID: "i-2", Status: state.MachineRunning, Addresses: state.Addresses{Private: "10.0.0.2"}},
			"relations/0":                     state.Relation{Life: state.Dying, Endpoints: []state.Endpoint{{Service: "mysql"}}},
			"relations/0/members/mysql/0":     state.Member{},
			"services/mysql/relations/0":      map[string]string{"name": "a"},
			"services/mysql/relations/1":      map[string]string{"name": "b"},
			"relations/0/settings/mysql/0":    map[string]int{"version": 9},
			"relations/1":                     state.Relation{Life: state.Alive, Endpoints: []state.Endpoint{{Service: "mysql"}}},
			"relations/1/members/mysql/1":     state.Member{},
			"relations/1/settings/mysql/1":    map[string]int{"version": 8},
			"uniters/mysql/0/workflow":        state.Workflow{State: "started", Charm: "local:noble/mysql-1"},
			"uniters/mysql/0/op":              state.Op{ID: "x"},
			"uniters/mysql/1/relations/1/a/0": state.MemberState{},
			"history/mysql/0/1":               state.HookRun{Seq: 1},
			"units/mysql/1/storage":           []string{"data/0", "data/2"},
			"machines/2/storage":              state.MachineStorage{All: []string{"data/0", "data/1", "data/2"}},
			"storage/data/0":                  state.Storage{Machine: "2", Pool: "rootfs", Made: true, Bound: true, Life: state.Alive, Unit: "mysql/1", State: state.StorageAttached, Location: "/old"},
			"storage/data/1":                  state.Storage{Machine: "2", Pool: "rootfs", Made: true, Bound: true, Life: state.Alive},
			"storage/data/2":                  state.Storage{Machine: "2", Pool: "rootfs", Made: true, Bound: true, Life: state.Dying, Unit: "mysql/1", State: state.StorageDetaching},
			"claims/machine-0":                keyspace.ClaimRecord{Epoch: 5, Holder: &state.Holder{Host: "me"}},
			"presence/machine-0":              keyspace.Presence{Session: "old"},
			"leaders/services/mysql":          keyspace.Presence{Session: "old"},
			"provisioner":                     state.ProvisionerTrouble{Messages: []string{"ill"}},
		}
		for key, doc := range docs {
			if err := tx.Keys().Put(key, doc); err != nil {
				return err
			}
		}
		return nil
	}))
	return s
}

// backUpArchive returns a backup with the directories of those units.
func backUpArchive(t testing.TB, s *state.State, folders ...string) *backupfile.Reader {
	t.Helper()
	var b bytes.Buffer
	w := backupfile.NewWriter(&b)
	h, err := Backup(t.Context(), s, w)
	for _, f := range folders {
		err = errors.Join(err, w.Add(backupfile.FolderName("0", f), func(w io.Writer) error { _, err := w.Write([]byte("tar")); return err }))
	}
	if err = errors.Join(err, w.Close(h)); err != nil {
		t.Fatal(err)
	}
	a, err := backupfile.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), backupfile.Environment)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func renameEnvironment(e *state.Environment) {
	e.Name, e.UUID = "another", "v"
	// An environment without settings must also have a map, to which Change can add one.
	e.Config[state.ProviderSHA256] = ""
	delete(e.Config, state.ProviderSHA256)
}

// restoreArchive restores a backup to an open store.
func restoreArchive(t *testing.T, r Restoration, a *backupfile.Reader, to store.Store) error {
	t.Helper()
	b, err := newBackupSource(a)
	check(t, err)
	_, err = r.restoreTo(t.Context(), b, to)
	return err
}

// TestRestoreAnew restores a backup as a new environment. All records about the hosts of the old environment
// must be gone.
func TestRestoreAnew(t *testing.T) {
	s, to := newWithHistory(t), memstore.New()
	check(t, restoreArchive(t, Restoration{URL: "mem:to", Change: renameEnvironment}, backUpArchive(t, s), to))
	got, was := dumpStore(t, to), dumpStore(t, s.Store())
	for _, gone := range []string{"units/mysql/0/state", "relations/0", "services/mysql/relations/0", "relations/0/members/mysql/0", "relations/1/members/mysql/1",
		"uniters/mysql/0/workflow", "uniters/mysql/0/op", "uniters/mysql/1/relations/1/a/0", "claims/machine-0", "presence/machine-0",
		"leaders/services/mysql", "provisioner", keys.CopyLock, keys.PartialCopy, keyspace.BlobHeadsPrefix + (sha256Hex([]byte("nobody refers to it")))} {
		if got[gone] != "" {
			t.Errorf("%s is there: %s", gone, got[gone])
		}
	}
	for _, kept := range []string{"services/mysql", "services/mysql/leader-settings", "counters/machines", "relations/1", "relations/1/settings/mysql/1",
		"history/mysql/0/1", keys.Format} {
		if got[kept] != was[kept] {
			t.Errorf("%s is %s, was %s", kept, got[kept], was[kept])
		}
	}
	check(t, (state.OpenIn(to)).View(t.Context(), func(v *state.View) error {
		env, err := v.Environment()
		m, merr := v.Machine("2")
		u, uerr := v.Unit("mysql/0")
		ran, rerr := actions.Get(v, 0)
		waits, werr := actions.Get(v, 1)
		data, berr := v.Keys().ReadBlob(sha256Hex(bytes.Repeat([]byte("blob"), keyspace.ChunkSize)))
		if env.UUID != "v" || env.Name != "another" || env.Incarnation != 0 || m.InstanceID != "" || m.Status != state.MachineError || !strings.Contains(m.Message, "juju resolved 2") ||
			m.Addresses.Private != "" || u.Charm != "" || u.Resolved != "" || ran.Status != actions.Failed || waits.Status != actions.Pending || len(data) != 4*keyspace.ChunkSize {
			t.Errorf("%+v\n%+v\n%+v\n%+v\n%+v", env, m, u, ran, waits)
		}
		return errors.Join(err, merr, uerr, rerr, werr, berr, state.CheckFormat(v))
	}))
	check(t, (state.OpenIn(to)).View(t.Context(), func(v *state.View) error {
		all, err := v.Storages()
		check(t, err)
		for i := range all {
			all[i].Since = time.Time{}
		}
		want := []state.Storage{{ID: "data/0", Machine: "2", Pool: "rootfs", Life: state.Alive, Unit: "mysql/1", State: state.StoragePending}}
		if diff := gocmp.Diff(want, all); diff != "" {
			t.Errorf("storage:\n%s", diff)
		}
		left, err := v.MachineStorage("2")
		if diff := gocmp.Diff(state.MachineStorage{All: []string{"data/0"}}, left); diff != "" {
			t.Errorf("of the machine:\n%s", diff)
		}
		return err
	}))
}

// TestRestoreStorage restores an environment with the content of some of its storages.
func TestRestoreStorage(t *testing.T) {
	to := memstore.New()
	r := Restoration{URL: "mem:to", Change: renameEnvironment, Storage: []string{"data/0", "data/1"}}
	check(t, restoreArchive(t, r, backUpArchive(t, newWithHistory(t)), to))
	check(t, (state.OpenIn(to)).View(t.Context(), func(v *state.View) error {
		all, err := v.Storages()
		for i := range all {
			all[i].Since = time.Time{}
		}
		want := []state.Storage{
			{ID: "data/0", Machine: "2", Pool: "rootfs", Made: true, Life: state.Alive, Unit: "mysql/1", State: state.StoragePending},
			{ID: "data/1", Machine: "2", Pool: "rootfs", Made: true, Bound: true, Life: state.Alive},
		}
		if diff := gocmp.Diff(want, all); diff != "" {
			t.Error(diff)
		}
		return err
	}))
}

// TestRestoreFolders checks that a unit whose directory is in the backup keeps its records.
func TestRestoreFolders(t *testing.T) {
	s, to := newWithHistory(t), memstore.New()
	check(t, restoreArchive(t, Restoration{URL: "mem:to", Change: renameEnvironment}, backUpArchive(t, s, "mysql-0"), to))
	got, was := dumpStore(t, to), dumpStore(t, s.Store())
	for _, kept := range []string{"units/mysql/0", "units/mysql/0/state", "relations/0/members/mysql/0", "uniters/mysql/0/workflow", "uniters/mysql/0/op"} {
		if got[kept] != was[kept] {
			t.Errorf("%s is %s, was %s", kept, got[kept], was[kept])
		}
	}
	if got["units/mysql/0/restored"] == "" || got["units/mysql/1/restored"] != "" || got["relations/1/members/mysql/1"] != "" {
		t.Errorf("%v", slices.Sorted(maps.Keys(got)))
	}
}

// TestRestoreReplaces restores an environment under a running agent. The agent must no longer be able to
// write, and no id may be used twice.
func TestRestoreReplaces(t *testing.T) {
	ctx := t.Context()
	s := newWithHistory(t)
	a := backUpArchive(t, s)
	agent := state.OpenIn(memstore.Share(s.Store()))
	claim, err := agent.TakeClaim(ctx, "0", state.Claimant{Holder: state.Holder{Host: "me"}})
	check(t, err)
	session, err := agent.NewSession(ctx)
	check(t, err)
	check(t, state.Announce(ctx, session, state.Under(claim), "machine-0"))
	check(t, s.Update(ctx, func(tx *state.Tx) error {
		return errors.Join(tx.Keys().Put("counters/machines", 9), tx.Keys().Put("counters/units/redis", 4), tx.Keys().Put("units/new/0", state.Unit{}),
			tx.Keys().Put("claims/machine-7", keyspace.ClaimRecord{Epoch: 1 << 40, Holder: &state.Holder{Host: "it"}}))
	}))
	check(t, restoreArchive(t, Restoration{URL: "mem:s", Replace: true}, a, memstore.Share(s.Store())))
	checkIs(t, state.Under(claim)(ctx, func(tx *state.Tx) error { return tx.Keys().Put("x", 1) }), state.ErrClaimLost)
	got := dumpStore(t, s.Store())
	epoch := func(id string) (n int64) {
		var c struct{ Epoch int64 }
		if err := json.Unmarshal([]byte(got["claims/machine-"+id]), &c); err != nil || strings.Contains(got["claims/machine-"+id], "holder") {
			t.Errorf("machine %s: %v, %s", id, err, got["claims/machine-"+id])
		}
		return c.Epoch
	}
	if epoch("0") < time.Now().Unix()-60 || epoch("2") < time.Now().Unix()-60 || epoch("7") != 1<<40+1 {
		t.Errorf("epochs: %d, %d, %d", epoch("0"), epoch("2"), epoch("7"))
	}
	for key, want := range map[string]string{"counters/machines": "9", "counters/units/redis": "4", "counters/units/mysql": "2",
		"units/new/0": "", "machines/2": dumpStore(t, newWithHistory(t).Store())["machines/2"], "leaders/services/mysql": "", "presence/machine-0": "", keys.PartialCopy: "", keys.CopyLock: ""} {
		if got[key] != want {
			t.Errorf("%s is %s, not %s", key, got[key], want)
		}
	}
	check(t, s.View(ctx, func(v *state.View) error {
		env, err := v.Environment()
		mark, marked, merr := v.Restored("mysql/1")
		if env.Incarnation != 1 || env.Harvest() != state.HarvestNone || !marked || !mark.Backup.Equal(a.Time) {
			t.Errorf("%+v, %+v", env, mark)
		}
		status, serr := status.Read(v, status.Options{Now: time.Now()})
		if info := status.Services["mysql"].Units["mysql/1"].Info; info == nil || !strings.Contains(info.Message, "restored from the backup of") {
			t.Errorf("status: %+v", info)
		}
		return errors.Join(err, merr, serr, state.CheckFormat(v))
	}))
	// Their agents must check the directories first.
	for _, unit := range []string{"mysql/0", "mysql/1"} {
		check(t, s.Update(ctx, func(tx *state.Tx) error { _, err := actions.SetResolved(tx, unit, "", false); return err }))
		checkIs(t, s.Update(ctx, func(tx *state.Tx) error { _, err := actions.SetResolved(tx, unit, "", false); return err }), state.ErrAlreadyResolved)
	}
}

// TestRestoreLost restores an environment into an empty store, which does not have the ids that were assigned
// since the backup.
func TestRestoreLost(t *testing.T) {
	to := memstore.New()
	check(t, restoreArchive(t, Restoration{URL: "mem:to", Replace: true, Adopt: true}, backUpArchive(t, newWithHistory(t)), to))
	got := dumpStore(t, to)
	if got["counters/machines"] != "103" || got["counters/units/mysql"] != "102" || got["units/mysql/0/restored"] != "" {
		t.Errorf("%s, %s, %s", got["counters/machines"], got["counters/units/mysql"], got["units/mysql/0/restored"])
	}
	// This unit has storage.
	if mark := got["units/mysql/1/restored"]; !strings.Contains(mark, `"adopted":true`) {
		t.Errorf("mysql/1: %s", mark)
	}
}

// TestRestoreCutOff interrupts a restoration at each of its commits. An incomplete restoration must not count
// as an environment, and the next restoration must succeed.
func TestRestoreCutOff(t *testing.T) {
	for _, r := range []Restoration{{URL: "mem:to", Change: renameEnvironment}, {URL: "mem:to", Replace: true}} {
		a := backUpArchive(t, newWithHistory(t))
		for n := 0; ; n++ {
			to := memstore.New()
			if r.Replace {
				to = newWithHistory(t).Store()
			}
			first := &failingStore{memstore.Share(to), n, n%2 == 0}
			err := restoreArchive(t, r, a, first)
			if err == nil {
				break
			}
			checkIs(t, err, errCut)
			if err := (state.OpenIn(to)).View(t.Context(), state.CheckFormat); n > 2 && first.left < 0 && !errors.Is(err, state.ErrFormat) && dumpStore(t, to)[keys.PartialCopy] != "" {
				t.Errorf("after %d commits half of it passes for an environment: %v", n, err)
			}
			done := !r.Replace && (state.OpenIn(to)).View(t.Context(), state.CheckFormat) == nil
			// The last commit of the interrupted restoration may have been written.
			if err := restoreArchive(t, r, a, to); !done || !errors.Is(err, state.ErrStoreExists) {
				check(t, err)
			}
			check(t, (state.OpenIn(to)).View(t.Context(), state.CheckFormat))
			if got := dumpStore(t, to); got["services/mysql"] == "" || got[keys.PartialCopy] != "" {
				t.Fatalf("after %d commits: %v", n, slices.Sorted(maps.Keys(got)))
			}
		}
	}
}

// TestFindRestored checks which stores count as restored from a backup. A store that cannot be read must not
// count as one that was not restored.
func TestFindRestored(t *testing.T) {
	put := func(key, value string) func(s *memstoreWithFault) {
		return func(s *memstoreWithFault) {
			_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte(value)}}})
			check(t, err)
		}
	}
	for name, c := range map[string]struct {
		change func(s *memstoreWithFault)
		found  bool
		err    error
	}{
		"restored":            {func(*memstoreWithFault) {}, true, nil},
		"moved":               {put(keys.Moved, `{"to":"elsewhere"}`), false, nil},
		"in another format":   {put(keys.Format, `{"format":999}`), false, nil},
		"a damaged format":    {put(keys.Format, `"damaged"`), false, nil},
		"away":                {func(s *memstoreWithFault) { s.fault = store.ErrAway }, false, store.ErrAway},
		"interrupted reading": {func(s *memstoreWithFault) { s.fault = context.Canceled }, false, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			env := statetest.Environment()
			env.Restored = "the backup"
			s := &memstoreWithFault{Store: memstore.New()}
			_, err := state.CreateIn(t.Context(), s, env)
			check(t, err)
			c.change(s)

			_, found, err := findRestored(t.Context(), state.OpenIn(s), "the backup")
			if found != c.found || !errors.Is(err, c.err) {
				t.Errorf("found %v, error %v; want %v, %v", found, err, c.found, c.err)
			}
		})
	}
}

// memstoreWithFault is a store in memory whose reads of single keys fail with fault, unless it is nil.
type memstoreWithFault struct {
	store.Store
	fault error
}

type snapshotWithFault struct {
	store.Snapshot
	fault error
}

func (s *memstoreWithFault) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	return &snapshotWithFault{snap, s.fault}, err
}

func (s *snapshotWithFault) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if s.fault != nil {
		return store.KV{}, false, s.fault
	}
	return s.Snapshot.Get(ctx, key)
}

func TestRestoreRefuses(t *testing.T) {
	ctx := t.Context()
	s := newWithHistory(t)
	a := backUpArchive(t, s)
	other, err := state.CreateIn(ctx, memstore.New(), state.Environment{Name: "o", UUID: "o", Provider: "local", DefaultSeries: "noble"})
	check(t, err)
	checkIs(t, restoreArchive(t, Restoration{Change: renameEnvironment}, a, memstore.Share(other.Store())), state.ErrStoreExists)
	checkIs(t, restoreArchive(t, Restoration{Replace: true}, a, memstore.Share(other.Store())), state.ErrStoreExists)
	checkIs(t, restoreArchive(t, Restoration{Change: renameEnvironment}, a, memstore.Share(s.Store())), state.ErrRunning)
	half := memstore.New()
	checkIs(t, restoreArchive(t, Restoration{Change: renameEnvironment}, a, &failingStore{memstore.Share(half), 3, false}), errCut)
	checkIs(t, restoreArchive(t, Restoration{Change: renameEnvironment}, backUpArchive(t, other), half), state.ErrStoreExists)
	hold, err := acquireCopyLock(ctx, memstore.Share(s.Store()), "mem:x", []string{keys.CopyLock})
	check(t, err)
	session, err := s.NewSession(ctx)
	check(t, err)
	checkIs(t, state.Announce(ctx, session, s.Update, "machine-2"), state.ErrRunning)
	check(t, hold.release(ctx))
}

// TestBackupIsWhole checks that archives with correct sums that are not backups of an environment are
// refused.
func TestBackupIsWhole(t *testing.T) {
	good := backUpArchive(t, newWithHistory(t))
	blob := keyspace.BlobHeadsPrefix + (sha256Hex(bytes.Repeat([]byte("blob"), keyspace.ChunkSize)))
	for name, spoil := range map[string]func(h *backupfile.Header, content map[string]string){
		"another format":      func(h *backupfile.Header, _ map[string]string) { h.StateFormat++ },
		"another environment": func(h *backupfile.Header, _ map[string]string) { h.UUID = "w" },
		"no environment":      func(_ *backupfile.Header, content map[string]string) { delete(content, keys.Environment) },
		"no blob":             func(_ *backupfile.Header, content map[string]string) { content[blob] = `{"size":1,"complete":true}` },
		"half a blob": func(_ *backupfile.Header, content map[string]string) {
			content[blob] = strings.Replace(content[blob], "true", "false", 1)
		},
		"a chunk":  func(_ *backupfile.Header, content map[string]string) { content["blobs/x/0000"] = "1" },
		"a leader": func(_ *backupfile.Header, content map[string]string) { content["leaders/x"] = "{}" },
		"no ASCII": func(_ *backupfile.Header, content map[string]string) { content["services/\u00e9"] = "{}" },
	} {
		h, content := good.Header, map[string]string{}
		for _, k := range good.Keys {
			content[k.Key] = string(k.Value)
		}
		spoil(&h, content)
		a := &backupfile.Reader{Header: h}
		for _, key := range slices.Sorted(maps.Keys(content)) {
			a.Keys = append(a.Keys, backupfile.Key{Key: key, Value: json.RawMessage(content[key])})
		}
		if _, err := newBackupSource(a); !errors.Is(err, backupfile.ErrDamaged) && !errors.Is(err, state.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRestored adds any key with any value to a backup. Either the backup is refused, or each key to write
// occurs once, in order, and its value can be decoded.
func FuzzRestored(f *testing.F) {
	f.Add("units/mysql/0", `{"machine":"0"}`, true)
	f.Add("machines/7", `{}`, false)
	f.Add("counters/x", `"x"`, true)
	f.Add("claims/machine-0", `{"epoch":1}`, true)
	f.Fuzz(func(t *testing.T, key, value string, replace bool) {
		env, _ := json.Marshal(statetest.Environment())
		a := &backupfile.Reader{Header: backupfile.Header{Name: statetest.Environment().Name, UUID: statetest.Environment().UUID, StateFormat: state.FormatVersion}}
		a.Keys = []backupfile.Key{{Key: keys.Environment, Value: env}}
		if key != keys.Environment && json.Valid([]byte(value)) {
			a.Keys = append(a.Keys, backupfile.Key{Key: key, Value: json.RawMessage(value)})
			slices.SortFunc(a.Keys, func(a, b backupfile.Key) int { return cmp.Compare(a.Key, b.Key) })
		}
		b, err := newBackupSource(a)
		if err != nil {
			return
		}
		all, err := Restoration{Replace: replace}.rewriteKeys(b, nil)
		if err != nil {
			return
		}
		for i, kv := range all {
			if i > 0 && kv.Key <= all[i-1].Key || !json.Valid(kv.Value) || isStoreLocal(kv.Key) || !replace && isClaimKey(kv.Key) {
				t.Errorf("%d: %q is %s", i, kv.Key, kv.Value)
			}
		}
	})
}

// TestBackupIsTheState checks that a backup contains the same keys that a migration copies.
func TestBackupIsTheState(t *testing.T) {
	s := newWithHistory(t)
	got := map[string]string{}
	for _, k := range backUpArchive(t, s).Keys {
		got[k.Key] = string(k.Value)
	}
	want := map[string]string{}
	for key, value := range withoutStoreLocal(dumpStore(t, s.Store())) {
		if key != keys.Format && !strings.HasPrefix(key, keyspace.BlobsPrefix) && key != keyspace.BlobHeadsPrefix+sha256Hex([]byte("nobody refers to it")) {
			want[key] = value
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(fmt.Sprint(diff))
	}
}

func sha256Hex(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
