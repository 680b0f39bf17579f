package updater

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Of two servers with one LRN the first works, and the other neither touches anything
// nor says that it was here, until the first is gone. One alert says so.
func TestTwins(t *testing.T) {
	r := newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))
	r.manifest = release.Manifest{Components: []release.Component{{Name: "a", Strategy: release.StopAll}}}
	first, second := t.TempDir(), t.TempDir()
	one, two := &fake{}, &fake{}
	stop := r.worker(1, first, one, WorkerOptions{})
	r.eventually("the first is there", func() bool { return r.server(1) == idOf(t, first) })
	r.worker(1, second, two, WorkerOptions{doubt: time.Millisecond})
	r.eventually("there is an alert", func() bool { return r.twins() == 1 })

	r.updater(nil)
	r.begin("1.1", 1)
	r.await("the update is done", succeeded)
	if did := two.all(); len(did) > 0 {
		t.Errorf("the second server has done %q", did)
	}
	if did := strings.Join(one.all(), " "); did != "a/stop a/update" {
		t.Errorf("the first server has done %q", did)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.eventually("the second takes its place", func() bool { return r.server(1) == idOf(t, second) })
}

// idOf is a folder's identity.
func idOf(t *testing.T, dir string) string {
	t.Helper()
	id, err := identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// server is whose presence stands at the LRN.
func (r *rig) server(lrn int) (id string) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(v *state.KeyView) error {
		all, err := LoadPresences(v)
		id = all[lrn].Server
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// twins counts the alerts about servers with one LRN.
func (r *rig) twins() (n int) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(v *state.KeyView) error {
		kvs, err := v.List(Keys().Outbox())
		n = 0
		for _, kv := range kvs {
			var a record.Alert
			if err := kv.Decode(&a); err != nil {
				return err
			}
			if a.Kind == record.AlertTwin {
				n++
			}
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
