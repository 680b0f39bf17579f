package worker

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// TestTurnOfAnotherRequest checks that a worker takes no turn at a rolling component because of an outdated
// request.
func TestTurnOfAnotherRequest(t *testing.T) {
	r := newRig(t, "sqlite:"+t.TempDir()+"/neco.db")
	w := &worker{o: Options{Store: r.Store, LRN: 2}, claim: r.claim(2)}
	q := *request(nil)
	for _, tt := range []struct {
		what   string
		now    *record.Request
		wanted error
	}{
		{"none", nil, errStale},
		{"stopped", request(func(q *record.Request) { q.Stop = true }), errStale},
		{"ended", ended(false), errStale},
		{"another attempt", request(func(q *record.Request) { q.Attempt = 2 }), errStale},
		{"another", request(func(q *record.Request) { q.ID = 5 }), errStale},
		{"of another store", request(func(q *record.Request) { q.StartedAt = t0().Add(time.Second) }), errStale},
		{"the same, of which a server is missing", request(func(q *record.Request) { q.Missing = []int{3} }), nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r.Update(func(tx *keyspace.Tx) error {
				if tt.now == nil {
					return nil
				}
				return tx.Put(keys.Current, *tt.now)
			})
			if err := w.moveTurn(t.Context(), "etcd", q, MoveTake); !errors.Is(err, tt.wanted) {
				t.Error(err)
			}
		})
	}
}

// TestTwelveMembers checks that only one of twelve members is down at a time. The original neco sorted ten
// servers as strings. Three of them took the same turn, and restarted three members of etcd at once.
func TestTwelveMembers(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = release.Manifest{Version: "1.1", Components: []release.Component{{Name: "etcd", Strategy: release.Rolling}}}
		var down, most, all atomic.Int64
		var lrns []int
		for lrn := range 12 {
			f := &updatertest.Server{Needs: map[string]bool{"etcd": true}}
			f.On = func(string) {
				now := down.Add(1)
				for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
				}
				for range 20 { // time in which another member could go down
					_ = r.Store.View(t.Context(), func(v *keyspace.View) error { _, err := v.List(""); return err })
				}
				all.Add(1)
				down.Add(-1)
			}
			lrns = append(lrns, lrn)
			r.worker(lrn, t.TempDir(), f, Options{})
		}
		r.updater()
		r.Begin("1.1", lrns...)
		r.Await("success", updatertest.Succeeded)
		if most.Load() != 1 || all.Load() != 12 {
			r.T.Errorf("%d members were updated, %d at once", all.Load(), most.Load())
		}
	})
}
