package leader

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/fakes/github"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// rig is a store with updaters.
type rig struct{ *updatertest.Rig }

// updater runs an updater until the test ends or stop is called.
func (r rig) updater(m *metrics.Registry) (stop func()) {
	return r.run(Options{Version: "1.0", Metrics: m})
}

// startLeader runs an updater from a package or a tarball.
func (r rig) startLeader(form string) (stop func()) {
	return r.run(Options{Version: "1.0", Form: form})
}

func (r rig) run(o Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	o.Store = r.Open()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.T.Error(err)
		}
	})
	r.T.Cleanup(stop)
	return stop
}

// configure sets configuration keys.
func (r rig) configure(values map[string]string) {
	r.Update(func(tx *keyspace.Tx) error {
		for key, value := range values {
			if err := tx.Put(keys.Config(key), value); err != nil {
				return err
			}
		}
		return nil
	})
}

// notes returns the files of a release that no server needs to install.
func notes() map[string][]byte { return map[string][]byte{"notes.txt": []byte("none")} }

// known returns the release that the leader knows.
func (r rig) known() (version string) {
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) error {
		found, err := updater.ReadKey[string](v, keys.Release)
		if found != nil {
			version = *found
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return version
}

// TestUpdaterOutlivesCompaction checks that an updater survives the compaction of the revision that it
// watches from. The original neco failed or hung forever.
func TestUpdaterOutlivesCompaction(t *testing.T) {
	need.Whole(t)
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	r := rig{updatertest.NewRig(t, cluster.URL("/neco"))}
	server := github.New()
	defer server.Close()
	r.configure(map[string]string{"env": "staging", "github-url": server.URL(), "github-repository": github.Repository})
	var old int64
	if err := r.Store.View(t.Context(), func(v *keyspace.View) (err error) { old, err = v.Revision(); return err }); err != nil {
		t.Fatal(err)
	}
	r.updater(nil)
	for _, version := range []string{"1.1", "1.2", "1.3"} {
		server.Publish(github.Release{Tag: "t-" + version, Files: notes()})
		r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Check, version) })
		r.Eventually("release "+version, func() bool { return r.known() == version })
		if _, err := cluster.Members[0].Compact(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Store.Await(t.Context(), old, keyspace.Below("")); err != nil {
		t.Errorf("who waits from a revision that is no more: %v", err)
	}
}

// TestProxy checks that the updater uses a configured proxy for releases and alerts, and that an operator can
// set it while the updater runs. In the original neco, an unset proxy was a fatal error.
func TestProxy(t *testing.T) {
	r := rig{updatertest.NewRig(t, "sqlite:"+t.TempDir()+"/neco.db")}
	server := github.New()
	defer server.Close()
	server.Publish(github.Release{Tag: "t-1.1", Files: notes()})
	var lock sync.Mutex
	through := 0
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		lock.Lock()
		through++
		lock.Unlock()
		forward.ServeHTTP(w, q)
	}))
	defer proxy.Close()
	r.configure(map[string]string{"env": "production", "github-url": server.URL(), "github-repository": github.Repository})
	r.updater(nil)
	r.Eventually("a release without a proxy", func() bool { return r.known() == "1.1" })
	server.Publish(github.Release{Tag: "t-1.2", Files: notes()})
	r.configure(map[string]string{"proxy": proxy.URL})
	r.Eventually("a release through the proxy", func() bool { return r.known() == "1.2" })
	lock.Lock()
	defer lock.Unlock()
	if through == 0 {
		t.Error("nothing went through the proxy")
	}
}

// inbox receives alerts. It refuses the first few.
type inbox struct {
	mu      sync.Mutex
	refuses int
	got     []string
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/hook" && i.refuses > 0 {
		i.refuses--
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	var a struct{ ID, Text string }
	_ = json.Unmarshal(body, &a) // if the value is wrong, the alert is empty, which the test notices
	i.got = append(i.got, r.URL.Path+" "+a.ID+a.Text)
}

func (i *inbox) all() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string{}, i.got...)
}

// TestDelivery checks that each receiver gets the alerts in the outbox in order. If one receiver does not
// answer, the others must not get an alert twice.
func TestDelivery(t *testing.T) {
	need.Whole(t)
	updatertest.OverStores(t, func(over *updatertest.Rig) {
		r := rig{over}
		box := &inbox{refuses: 2}
		server := httptest.NewServer(box)
		defer server.Close()
		r.configure(map[string]string{"notify.slack": server.URL + "/slack", "notify.webhook": server.URL + "/hook"})
		r.Update(func(tx *keyspace.Tx) error {
			if err := tx.Put(keys.Alert("6-1-stopped"), "what is no alert"); err != nil {
				return err
			}
			return tx.Put(keys.Alert("7-1-stopped"), record.Alert{ID: "7-1-stopped", Kind: record.AlertStopped, Message: "why", At: updatertest.T0()})
		})
		m := metrics.NewRegistry()
		r.updater(m)
		want := []string{"/slack :x: neco: why", "/hook 7-1-stopped"}
		r.Eventually("both places", func() bool { return cmp.Equal(want, box.all()) })
		r.Eventually("an outbox without it", func() bool {
			left := 2
			_ = r.Store.View(t.Context(), func(v *keyspace.View) error {
				kvs, err := v.List(keys.Outbox)
				left = len(kvs)
				return err
			})
			return left == 1
		})
		if diff := cmp.Diff(want, box.all()); diff != "" {
			t.Error(diff)
		}
		var text strings.Builder
		if m.Write(&text); !strings.Contains(text.String(), "neco_updater_leader 1\n") ||
			!strings.Contains(text.String(), `neco_updater_alerts_total{result="failed"} 2`) {
			t.Error(text.String())
		}
	})
}

// TestDeliveryAtTheEnd checks that an updater that is stopped while it sends an alert still removes the
// alert from the outbox. Otherwise the next leader would send it again.
func TestDeliveryAtTheEnd(t *testing.T) {
	r := rig{updatertest.NewRig(t, "sqlite:"+t.TempDir()+"/neco.db")}
	ctx, cancel := context.WithCancel(t.Context())
	box := &inbox{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		cancel()
		box.ServeHTTP(w, q)
	}))
	defer server.Close()
	r.configure(map[string]string{"notify.slack": server.URL + "/slack", "notify.webhook": server.URL + "/hook"})
	r.Update(func(tx *keyspace.Tx) error {
		return tx.Put(keys.Alert("7-1-stopped"), record.Alert{ID: "7-1-stopped", Kind: record.AlertStopped, Message: "why", At: updatertest.T0()})
	})
	if err := Run(ctx, Options{Store: r.Open(), Version: "1.0"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/slack :x: neco: why", "/hook 7-1-stopped"}, box.all()); diff != "" {
		t.Error(diff)
	}
	err := r.Store.View(t.Context(), func(v *keyspace.View) error {
		kvs, err := v.List(keys.Outbox)
		if len(kvs) > 0 {
			t.Errorf("it would be sent again: %d", len(kvs))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
