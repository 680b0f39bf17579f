package leader

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestManyFailures makes every worker of a large fleet fail at the same moment, each with a long
// message. The update must stop, and one alert must be sent.
func TestManyFailures(t *testing.T) {
	need.Whole(t)
	updatertest.OverStores(t, func(over *updatertest.Rig) {
		r := rig{over}
		box := &inbox{}
		server := httptest.NewServer(box)
		defer server.Close()
		r.configure(map[string]string{"notify.webhook": server.URL + "/hook"})

		request := updatertest.Request(nil)
		request.Servers = nil
		for lrn := range 180 {
			request.Servers = append(request.Servers, lrn)
			w := updatertest.Failed(1)
			w.Message = fmt.Sprintf("%d: ", lrn) + strings.Repeat("x", 1500)
			r.Update(func(tx *keyspace.Tx) error {
				if err := tx.Put(keys.BootServer(lrn), struct{}{}); err != nil {
					return err
				}
				return tx.Put(keys.Worker(lrn), w)
			})
		}
		r.Update(func(tx *keyspace.Tx) error {
			if err := tx.Put(keys.History(4), record.History{ID: 4, To: "1.1", Servers: request.Servers}); err != nil {
				return err
			}
			return tx.Put(keys.Current, request)
		})

		r.updater(nil)
		r.Eventually("a stop", func() bool { // the earlier log would fill pages
			var q *record.Request
			_ = r.Store.View(t.Context(), func(v *keyspace.View) (err error) {
				q, err = updater.LoadRequest(v)
				return err
			})
			return q != nil && q.Stop && q.Ended()
		})
		r.Eventually("an alert", func() bool { return len(box.all()) > 0 })
		r.Eventually("an empty outbox", func() bool {
			left := 1
			_ = r.Store.View(t.Context(), func(v *keyspace.View) error {
				kvs, err := v.List(keys.Outbox)
				left = len(kvs)
				return err
			})
			return left == 0
		})
		if got := box.all(); len(got) != 1 || got[0] != "/hook 4-1-stopped" {
			t.Errorf("the alerts are %q", got)
		}

		err := r.Store.View(t.Context(), func(v *keyspace.View) error {
			workers, err := updater.LoadWorkers(v)
			if len(workers) != 180 || len(workers[7].Message) < 1500 {
				t.Errorf("the servers' own texts are not whole: %q", workers[7].Message)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
