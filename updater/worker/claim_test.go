package worker

import (
	"path/filepath"
	"strings"
	"testing"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestTwins checks two servers with the same LRN. The first one works. The second server changes nothing and
// does not register until an operator allows it, even if the first is gone. One alert reports the second
// server.
func TestTwins(t *testing.T) {
	r := newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))
	r.manifest = release.Manifest{Components: []release.Component{{Name: "a", Strategy: release.StopAll}}}
	first, second := t.TempDir(), t.TempDir()
	one, two := &updatertest.Server{}, &updatertest.Server{}
	stop := r.worker(1, first, one, Options{})
	r.Eventually("the first is there", func() bool { return strings.HasSuffix(r.server(1), first) })
	r.worker(1, second, two, Options{})
	r.Eventually("there is an alert", func() bool { return r.twins() == 1 })
	r.Eventually("it shows that it waits", func() bool { return r.twinAt(1).Folder == second })

	r.updater()
	r.Begin("1.1", 1)
	r.Await("the update is done", updatertest.Succeeded)
	if did := two.All(); len(did) > 0 {
		t.Errorf("the second server has done %q", did)
	}
	if did := strings.Join(one.All(), " "); did != "a/stop a/update" {
		t.Errorf("the first server has done %q", did)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the first is gone", func() bool { return r.server(1) == "" })
	_, err := r.Store.TakeClaim(t.Context(), keyspace.ClaimTarget{Key: keys.Claim(1), Presence: keys.Presence(1)}, keyspace.Claimant{Holder: keyspace.Holder{Host: "third"}})
	if err == nil {
		t.Error("a third server was let in")
	}
	err = r.Store.Update(t.Context(), func(tx *keyspace.Tx) error {
		return updater.Apply(tx, decide.Unregister(decide.Snapshot{}, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Eventually("the second takes its place", func() bool { return strings.HasSuffix(r.server(1), second) })
	r.Eventually("it waits no more", func() bool { return r.twinAt(1) == record.Twin{} })
}

// twinAt returns the record of the server that waits for the LRN.
func (r *rig) twinAt(lrn int) (t record.Twin) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		all, err := updater.PeekServers[record.Twin](v, keys.Twins)
		t = all[lrn]
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return t
}

// server returns the id of the server whose presence is recorded for the LRN.
func (r *rig) server(lrn int) (id string) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		all, err := updater.PeekServers[record.Presence](v, keys.Presences)
		id = all[lrn].Server
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return id
}

// twins counts the alerts about servers with the same LRN.
func (r *rig) twins() (n int) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		kvs, err := v.List(keys.Outbox)
		n = 0
		for _, kv := range kvs {
			var a record.Alert
			if err := keyspace.DecodeInto(kv, &a); err != nil {
				return err
			}
			if a.Kind == record.AlertTwin {
				n++
			}
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return n
}
