package leader

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/fakes/github"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestNoRoom checks that an update does not begin while a server lacks space for it, and that this is
// reported once, even if leaders change. An update begins as soon as the server has enough space, or as soon
// as there is a newer release that fits.
func TestNoRoom(t *testing.T) {
	need.Whole(t)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(10<<30)))
	}))
	defer files.Close()
	large := "\ncomponents:\n- {name: a, strategy: any, artifact: {deb: {url: \"" + files.URL + "/a.deb\", sha256: \"" + strings.Repeat("0", 64) + "\"}}}\n"
	const small = "\ncomponents:\n- {name: a, strategy: any, services: [a.service]}\n"

	for what, tt := range map[string]struct {
		then    func(r rig, publish func(version, plan string))
		version string
	}{
		"room is made":    {func(r rig, _ func(version, plan string)) { r.putRoom(30 << 30) }, "1.1"},
		"a newer release": {func(_ rig, publish func(version, plan string)) { publish("1.2", small) }, "1.2"},
	} {
		t.Run(what, func(t *testing.T) {
			updatertest.OverStores(t, func(over *updatertest.Rig) {
				r := rig{over}
				server := github.New()
				defer server.Close()
				looks := 0
				publish := func(version, plan string) {
					server.Publish(github.Release{Tag: "t-" + version, Files: packaged(r.T, version, "version: "+version+plan)})
					looks++
					r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Check, fmt.Sprint(looks)) })
				}
				box := &inbox{}
				alerts := httptest.NewServer(box)
				defer alerts.Close()
				r.configure(map[string]string{
					"env": "production", "github-url": server.URL(), "github-repository": github.Repository, "notify.webhook": alerts.URL + "/hook",
				})
				r.Update(func(tx *keyspace.Tx) error {
					if err := tx.Put(keys.BootServer(1), struct{}{}); err != nil {
						return err
					}
					return tx.Put(keys.Presence(1), record.Presence{Version: "1.0", Package: "tarball/" + runtime.GOARCH})
				})
				r.putRoom(10 << 30)

				publish("1.1", large)
				stop := r.startLeader("tarball")
				r.Eventually("an alert", func() bool { return len(box.all()) == 1 })
				if got := box.all()[0]; !strings.HasPrefix(got, "/hook no-room-1.1-") {
					r.T.Errorf("the alert is %q", got)
				}
				stop()
				before := server.Count().Lists
				stop = r.startLeader("tarball")
				r.putRoom(9 << 30)
				r.Eventually("a look of the next leader", func() bool { return server.Count().Lists > before })
				r.putRoom(8 << 30)
				if q := r.request(); q != nil || len(box.all()) != 1 {
					r.T.Errorf("%+v was begun, and the alerts are %q", q, box.all())
				}

				tt.then(r, publish)
				r.Eventually("it begins", func() bool { q := r.request(); return q != nil && q.Version == tt.version })
				r.Eventually("the alert of its start", func() bool { return len(box.all()) == 2 })
				if told := r.toldNoRoom(); told != nil {
					r.T.Errorf("%+v is still there", told)
				}
				stop()
			})
		})
	}
}

// putRoom records server 1's free space.
func (r rig) putRoom(free int64) {
	r.T.Helper()
	i := record.Inventory{At: time.Now().UTC(), Room: []record.Room{{At: "/", For: []string{record.RoomDownloads, record.RoomPackages}, Free: free}}}
	r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Inventory(1), i) })
}

func (r rig) request() (q *record.Request) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
		q, err = updater.LoadRequest(v)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return q
}

func (r rig) toldNoRoom() (told *record.NoRoom) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
		told, err = updater.ReadKey[record.NoRoom](v, keys.NoRoom)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return told
}
