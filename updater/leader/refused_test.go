package leader

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"bijou/state/keyspace"
	"bijou/testscripts/fakes/github"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// packaged returns the files of a release whose package contains the manifest.
func packaged(t *testing.T, version, manifest string) map[string][]byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for name, data := range map[string]string{"bijou": "a program", release.ManifestFile: manifest} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{fmt.Sprintf("bijou_%s_linux_%s.tar.gz", version, runtime.GOARCH): packed.Bytes()}
}

// refusalsOf returns the refused releases.
func (r rig) refusalsOf() (versions string) {
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		found, err := keyspace.LoadOrZero[record.Refusals](v, keys.Refused)
		for _, one := range found.Releases {
			versions += one.Version + " "
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return strings.TrimSpace(versions)
}

// TestRefusedOnce checks a release that cannot be installed. It starts no update, and is reported once, even
// if leaders change. It does not block an older valid release. It is forgotten when an update to a newer
// release begins.
func TestRefusedOnce(t *testing.T) {
	need.Whole(t)
	updatertest.OverStores(t, func(over *updatertest.Rig) {
		r := rig{over}
		const plan = "\ncomponents:\n- {name: a, strategy: any, services: [a.service]}\n"
		server := github.New()
		defer server.Close()
		publish := func(version, manifest string) {
			server.Publish(github.Release{Tag: "t-" + version, Files: packaged(t, version, manifest)})
		}
		box := &inbox{}
		alerts := httptest.NewServer(box)
		defer alerts.Close()
		r.configure(map[string]string{
			"env": "production", "github-url": server.URL(), "github-repository": github.Repository, "notify.webhook": alerts.URL + "/hook",
		})
		look := func(n int) {
			r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Check, fmt.Sprint(n)) })
		}
		r.Update(func(tx *keyspace.Tx) error {
			if err := tx.Put(keys.BootServer(1), struct{}{}); err != nil {
				return err
			}
			return tx.Put(keys.Pause, record.Pause{})
		})

		// There is one good release, and there are two newer ones that cannot be installed. Each of the two
		// is reported once.
		publish("1.1", "version: 1.1"+plan)
		publish("1.2", "version: 1.1"+plan)
		publish("1.3", "version: 1.3\ncomponents:\n- {name: a, strategy: blue-green}\n")
		begin := func() (stop func()) { return r.startLeader("tarball") }
		stop := begin()
		r.Eventually("the good one", func() bool { return r.known() == "1.1" && r.refusalsOf() == "1.3 1.2" })
		r.Eventually("two alerts", func() bool { return len(box.all()) == 2 })

		for n := range 3 {
			stop()
			before := server.Count().Lists
			stop = begin()
			r.Eventually("a look of the next leader", func() bool { return server.Count().Lists > before })
			before = server.Count().Lists
			look(n)
			r.Eventually("another look", func() bool { return server.Count().Lists > before })
		}
		if got := box.all(); len(got) != 2 || !strings.Contains(got[0]+got[1], "refused-1.2-") || !strings.Contains(got[0]+got[1], "refused-1.3-") {
			t.Errorf("the alerts are %q", got)
		}

		// An update to the next good release begins automatically.
		publish("1.4", "version: 1.4"+plan)
		look(10)
		r.Eventually("the next good one", func() bool { return r.known() == "1.4" && r.refusalsOf() == "" })
		err := r.Store.View(t.Context(), func(v *keyspace.View) error {
			p, err := updater.ReadKey[record.Published](v, keys.Published)
			if p == nil || p.Version != "1.4" || p.Sums == "" || p.Plan == "" || p.Checked == "" {
				t.Errorf("what is known of it is %+v", p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		// A release whose package is unavailable is not refused. An update to it begins once the package is
		// available.
		if err := server.Misbehave(github.Packages); err != nil {
			t.Fatal(err)
		}
		publish("1.5", "version: 1.5"+plan)
		look(11)
		r.Eventually("an alert", func() bool { return len(box.all()) == 3 })
		if got := r.refusalsOf(); got != "" {
			t.Errorf("%q is refused", got)
		}
		if err := server.Misbehave(github.None); err != nil {
			t.Fatal(err)
		}
		look(12)
		r.Eventually("what it consists of", func() (known bool) {
			_ = r.Store.View(t.Context(), func(v *keyspace.View) error {
				p, err := updater.ReadKey[record.Published](v, keys.Published)
				known = p != nil && p.Version == "1.5" && p.Sums != ""
				return err
			})
			return known
		})

		// If the publisher repairs a release, an update to it begins soon, even if nobody requests another
		// lookup.
		publish("1.6", plan)
		look(13)
		r.Eventually("a refusal", func() bool { return r.refusalsOf() == "1.6" })
		publish("1.6", "version: 1.6"+plan)
		r.Eventually("the mended release", func() bool { return r.known() == "1.6" && r.refusalsOf() == "" })
		stop()
	})
}
