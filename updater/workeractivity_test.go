package updater

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// What takes a while is told: by the workers, what they do or wait for; by the records, who
// waits at a barrier. What is over is told no more.
func TestActivity(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = plan()
		hung := map[int]*fake{}
		for _, lrn := range []int{1, 2} {
			hung[lrn] = &fake{hang: map[string]bool{"etcd/update": true}, needs: map[string]bool{"etcd": true}}
		}
		second := r.t.TempDir()
		if err := r.worker(2, second, hung[2], WorkerOptions{})(); err != nil { // it was seen, and is away
			r.t.Fatal(err)
		}
		r.worker(1, r.t.TempDir(), hung[1], WorkerOptions{})
		r.updater(nil)
		r.begin("1.1", 1, 2)
		snapshot := func() (s Snapshot) {
			err := r.store.View(r.t.Context(), func(v *state.KeyView) (err error) {
				if s, err = Load(v, "1.0"); err == nil {
					s.Activities, err = LoadActivities(v)
				}
				return err
			})
			if err != nil {
				r.t.Fatal(err)
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
		r.eventually("1 waits for 2 to come", is(1, record.WaitBarrier, "waits for server 2", 2))
		r.worker(2, second, hung[2], WorkerOptions{})
		has, waits := 1, 2
		r.eventually("one waits for the other's turn", func() bool {
			if is(1, record.WaitTurn, "server 2 has", 2)() {
				has, waits = 2, 1
			}
			return is(waits, record.WaitTurn, "waits for its turn, which server", has)()
		})
		r.eventually("the other is at it", is(has, "", "rolls etcd"))
		if s := snapshot(); !slices.Equal(s.serversAtFault([]int{1, 2}), []int{has}) {
			r.t.Errorf("it is the fault of %v", s.serversAtFault([]int{1, 2}))
		}
		for _, f := range hung {
			f.set(func() { f.hang = nil })
		}
		r.change(func(s Snapshot) ([]Change, error) { return Halt(s, time.Now(), "a look") })
		r.await("stop", func(q record.Request, _ map[int]record.Status) bool { return q.Stop && q.Ended() })
		r.change(func(s Snapshot) ([]Change, error) { return Retry(s, time.Now(), "me") })
		r.await("success", succeeded)
		if a, ok := snapshot().Activity(1); ok {
			r.t.Errorf("at the end it does %+v", a)
		}
	})
}
