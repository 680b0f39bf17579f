package outage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/state/store/sqlite"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// soaked is the number of hooks after which the state is measured first. By then the state keeps the maximum
// number of records for each unit.
const soaked = 5_000

// soakCharm returns a hook that prints a line in each update-status, and changes a setting in every tenth
// one. It prints without starting a program, so that ten thousand hooks take one minute and not ten.
func soakCharm() string {
	return "#!/bin/sh\necho " + strings.Repeat("so-much-that-the-log-of-its-unit-is-soon-full-", 40) + `
case $$ in *7) relation-set -r "$(relation-ids ring)" password="$$"; status-set active "$$" ;; esac
`
}

// TestSoak runs 10,000 hooks on each store, with actions and upgrades between them. The size of the
// state must be the same after the second half as after the first.
func TestSoak(t *testing.T) {
	need.Long(t)
	t.Run("sqlite", func(t *testing.T) {
		w := newWorld(t, "")
		w.soak("sqlite", func() (store.Store, error) { return sqlite.Open(t.Context(), w.StateFile()) })
		info, err := os.Stat(w.StateFile())
		check(t, err)
		fmt.Printf("outage: soak: sqlite: the file has %.1f MB\n", float64(info.Size())/1e6)
	})
	t.Run("etcd", func(t *testing.T) {
		c := etcdtest.For(t, etcdtest.Options{Members: 1})
		w := newWorld(t, c.URL("/soak"))
		w.soak("etcd", func() (store.Store, error) { return etcd.Open(t.Context(), w.url) })
	})
}

func (w *world) soak(kind string, open func() (store.Store, error)) {
	dir := filepath.Join(w.t.TempDir(), "soak")
	check(w.t, os.MkdirAll(filepath.Join(dir, "hooks"), 0o755))
	check(w.t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte("name: soak\npeers:\n  ring: ring\n"), 0o644))
	check(w.t, os.WriteFile(filepath.Join(dir, "hooks", "update-status"), []byte(soakCharm()), 0o755))
	check(w.t, os.WriteFile(filepath.Join(dir, "hooks", "ring-relation-changed"), []byte("#!/bin/sh\n"), 0o755))
	w.Juju("deploy", dir, "-n", "3")
	w.Juju("set-environment", "update-status-interval=1ms")
	began := time.Now()
	var sizes [2]int
	for half := range sizes {
		for done := 0; done < soaked*(half+1); {
			for n := range 4 { // actions add other records than hooks do
				check(w.t, os.WriteFile(filepath.Join(dir, "padding"), []byte(strings.Repeat(strconv.Itoa(n), 5000)), 0o644))
				w.Juju("run", "soak/0", "soak/1", "soak/2", "--", "echo done")
			}
			w.Juju("upgrade-charm", "soak")
			done = w.hooksRun()
		}
		sizes[half] = w.held(open)
	}
	fmt.Printf("outage: soak: %s: %d hooks in %v; the state holds %.2f MB after %d, %.2f MB at the end, in %d charms\n", kind, w.hooksRun(),
		time.Since(began).Round(time.Second), float64(sizes[0])/1e6, soaked, float64(sizes[1])/1e6, w.charms())
	if sizes[1] > sizes[0]+sizes[0]/10 {
		w.t.Errorf("the state has grown from %d bytes to %d", sizes[0], sizes[1])
	}
}

// read reads the environment's state.
func (w *world) read(f func(v *state.View) error) {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), w.url)
	check(w.t, err)
	defer s.Close()
	check(w.t, s.View(w.t.Context(), f))
}

// hooksRun returns the number of hooks that all units have run.
func (w *world) hooksRun() (n int) {
	w.read(func(v *state.View) error {
		for i := range 3 {
			runs, err := v.HookRuns(fmt.Sprintf("soak/%d", i))
			if err != nil || len(runs) == 0 {
				return err
			}
			n += int(runs[len(runs)-1].Seq) + 1
		}
		return nil
	})
	return n
}

// charms returns the number of revisions in the environment.
func (w *world) charms() (n int) {
	w.read(func(v *state.View) error {
		all, err := v.Charms()
		n = len(all)
		return err
	})
	return n
}

// held returns the total size of the store's keys and values in bytes.
func (w *world) held(open func() (store.Store, error)) (n int) {
	w.t.Helper()
	s, err := open()
	check(w.t, err)
	defer s.Close()
	snapshot, err := s.Snapshot(w.t.Context())
	check(w.t, err)
	defer snapshot.Close()
	kvs, err := snapshot.List(w.t.Context(), "")
	check(w.t, err)
	for _, kv := range kvs {
		n += len(kv.Key) + len(kv.Value)
	}
	return n
}
