package worker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestActivity checks that slow work is shown. Workers record their activities and waits, and the records
// show which workers wait at a barrier. Finished work is no longer shown.
func TestActivity(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = plan()
		hung := map[int]*updatertest.Server{}
		for _, lrn := range []int{1, 2} {
			hung[lrn] = &updatertest.Server{Hang: map[string]bool{"etcd/update": true}, Needs: map[string]bool{"etcd": true}}
		}
		second := r.T.TempDir()
		if err := r.worker(2, second, hung[2], Options{})(); err != nil { // the worker was present and is now away
			r.T.Fatal(err)
		}
		r.worker(1, r.T.TempDir(), hung[1], Options{})
		r.updater()
		r.Begin("1.1", 1, 2)
		snapshot := func() (s decide.Snapshot) {
			err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
				if s, err = decide.Load(v, "1.0"); err == nil {
					s.Activities, err = updater.PeekServers[record.Activity](v, keys.Activities)
				}
				return err
			})
			if err != nil {
				r.T.Fatal(err)
			}
			return s
		}
		is := func(lrn int, kind, message string, servers ...int) func() bool {
			return func() bool {
				s := snapshot()
				if s.Current == nil {
					return false
				}
				a, _ := s.Activity(lrn)
				return a.Kind == kind && strings.Contains(a.Message, message) && slices.Equal(a.Servers, servers)
			}
		}
		r.Eventually("1 waits for 2 to come", is(1, record.WaitBarrier, "waits for server 2", 2))
		r.worker(2, second, hung[2], Options{})
		has, waits := 1, 2
		r.Eventually("one waits for the other's turn", func() bool {
			if is(1, record.WaitTurn, "turn of server 2", 2)() {
				has, waits = 2, 1
			}
			return is(waits, record.WaitTurn, "waits for its turn; it is the turn of server", has)()
		})
		r.Eventually("the other is at it", is(has, "", "rolls etcd"))
		if s := snapshot(); !slices.Equal(s.ServersAtFault([]int{1, 2}), []int{has}) {
			r.T.Errorf("it is the fault of %v", s.ServersAtFault([]int{1, 2}))
		}
		for _, f := range hung {
			f.Set(func() { f.Hang = nil })
		}
		r.change(func(s decide.Snapshot) ([]updater.Change, error) { return decide.Halt(s, time.Now(), "a look") })
		r.Await("stop", func(q record.Request, _ map[int]record.Status) bool { return q.Stop && q.Ended() })
		r.change(func(s decide.Snapshot) ([]updater.Change, error) { return decide.Retry(s, time.Now(), "me") })
		r.Await("success", updatertest.Succeeded)
		if a, ok := snapshot().Activity(1); ok {
			r.T.Errorf("at the end it does %+v", a)
		}
	})
}
