package worker

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater"
	"bijou/updater/clock"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// plan returns a manifest with a component of each strategy.
func plan() release.Manifest {
	return release.Manifest{Version: "1.1", Components: []release.Component{
		{Name: "cke", Strategy: release.StopAll, Services: []string{"cke"}},
		{Name: "etcd", Strategy: release.Rolling},
		{Name: "sabakan", Strategy: release.Any},
		{Name: "images", Strategy: release.LeaderOnce, Contents: &release.Contents{Key: "images"}},
		{Name: "last", Strategy: release.Any},
	}}
}

// TestFleetOfWorkers checks that three servers carry out all strategies step by step together.
func TestFleetOfWorkers(t *testing.T) {
	need.Whole(t)
	overStoresAndTime(t, func(r *rig) {
		r.manifest = plan()
		var mu sync.Mutex
		stopped, down, most := map[int]bool{}, 0, 0
		servers := map[int]*updatertest.Server{}
		for _, lrn := range []int{1, 2, 10} {
			f := &updatertest.Server{Needs: map[string]bool{"etcd": true}}
			f.On = func(what string) {
				mu.Lock()
				defer mu.Unlock()
				switch what {
				case "cke/stop":
					stopped[lrn] = true
				case "cke/update":
					if len(stopped) != 3 {
						r.T.Errorf("server %d starts the new cke before all are stopped: %v", lrn, stopped)
					}
				case "etcd/update":
					down++
					most = max(most, down)
					mu.Unlock()
					r.rest() // time in which another step could begin
					mu.Lock()
					down--
				}
			}
			servers[lrn] = f
			r.worker(lrn, r.T.TempDir(), f, Options{})
		}
		r.updater()
		r.Begin("1.1", 1, 2, 10)
		r.Await("success", updatertest.Succeeded)
		brought := 0
		for lrn, f := range servers {
			want := []string{"cke/stop", "cke/update", "etcd/update", "sabakan/update", "last/update"}
			got := slices.DeleteFunc(f.All(), func(s string) bool { return s == "images/bring" })
			brought += len(f.All()) - len(got)
			if !slices.Equal(got, want) {
				r.T.Errorf("server %d did %v, want %v", lrn, got, want)
			}
		}
		if brought != 1 || most != 1 {
			r.T.Errorf("contents were brought %d times, and %d members were down at once", brought, most)
		}
	})
}

// TestStopInAStep checks that a stop ends a step that would hang forever, and that a retry runs it
// again.
func TestStopInAStep(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = plan()
		f := &updatertest.Server{Hang: map[string]bool{"sabakan/update": true}}
		r.worker(1, r.T.TempDir(), f, Options{})
		r.updater()
		r.Begin("1.1", 1)
		r.Eventually("the step runs", func() bool { return slices.Contains(f.All(), "sabakan/update") })
		r.change(func(s decide.Snapshot) ([]updater.Change, error) { return decide.Halt(s, time.Now(), "a look") })
		r.Await("stop", func(q record.Request, _ map[int]record.Status) bool { return q.Stop && q.Ended() })
		f.Set(func() { f.Hang = nil })
		r.change(func(s decide.Snapshot) ([]updater.Change, error) { return decide.Retry(s, time.Now(), "me") })
		r.Await("success", updatertest.Succeeded)
		if n := strings.Count(strings.Join(f.All(), " "), "sabakan/update"); n != 2 {
			r.T.Errorf("the step was begun %d times", n)
		}
	})
}

// change carries out an operator's command.
func (r *rig) change(command func(s decide.Snapshot) ([]updater.Change, error)) {
	r.T.Helper()
	r.Update(func(tx *keyspace.Tx) error {
		s, err := decide.Load(tx.View, "1.0")
		if err != nil {
			return err
		}
		changes, err := command(s)
		return errors.Join(err, updater.Apply(tx, changes))
	})
}

// TestRestartInAStep checks that a worker that ends in the middle of a step continues it after its
// restart.
func TestRestartInAStep(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = plan()
		dir := r.T.TempDir()
		f := &updatertest.Server{Hang: map[string]bool{"cke/update": true}}
		stop := r.worker(1, dir, f, Options{})
		r.updater()
		r.Begin("1.1", 1)
		r.Eventually("the step runs", func() bool { return slices.Contains(f.All(), "cke/update") })
		if err := stop(); err != nil {
			r.T.Fatal(err)
		}
		f.Set(func() { f.Hang = nil })
		r.worker(1, dir, f, Options{})
		r.Await("success", updatertest.Succeeded)
		if n := strings.Count(strings.Join(f.All(), " "), "cke/stop"); n != 1 {
			r.T.Errorf("the step before was run %d times", n)
		}
	})
}

// TestFailure checks that a failed step stops the update, with the server, step and reason.
func TestFailure(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = plan()
		for _, lrn := range []int{1, 2} {
			r.worker(lrn, r.T.TempDir(), &updatertest.Server{Fail: map[string]error{"images/bring": errors.New("sabakan answers 500")}}, Options{})
		}
		r.updater()
		r.Begin("1.1", 1, 2)
		r.Await("stop", func(q record.Request, _ map[int]record.Status) bool {
			return q.Stop && strings.Contains(q.Why, "step images/update") && strings.Contains(q.Why, "sabakan answers 500")
		})
	})
}

// TestHandOver checks that an old worker installs the release, and that its successor continues.
func TestHandOver(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = plan()
		dir := r.T.TempDir()
		installed := ""
		o := Options{Version: "1.0", Install: func(_ context.Context, r record.Request, _ record.Config) error {
			installed = r.Version
			return nil
		}}
		r.updater()
		ctx, cancel := context.WithTimeout(r.T.Context(), updatertest.MaxWait)
		defer cancel()
		o.Store, o.LRN, o.Dir, o.Server, o.Manifest, o.Claimant.Folder = r.Open(), 1, dir, &updatertest.Server{}, r.manifest, dir
		r.Begin("1.1", 1)
		if err := Run(ctx, o); !errors.Is(err, ErrHandOver) || installed != "1.1" {
			r.T.Fatalf("installed %q: %v", installed, err)
		}
		r.worker(1, dir, &updatertest.Server{}, Options{Version: "1.1"})
		r.Await("success", updatertest.Succeeded)
	})
}

// TestNoGate checks that workers read each other's records if no leader opens gates, even if their clocks
// are an hour off in either direction.
func TestNoGate(t *testing.T) {
	need.Whole(t)
	overStores(t, func(r *rig) {
		r.manifest = release.Manifest{Components: []release.Component{{Name: "one", Strategy: release.Any}}}
		r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Config("worker-timeout"), "1m") })
		for lrn, off := range map[int]time.Duration{1: time.Hour, 2: -time.Hour} {
			r.clock = clock.StartAt(time.Now().Add(off))
			r.worker(lrn, r.T.TempDir(), &updatertest.Server{}, Options{})
		}
		r.Begin("1.1", 1, 2)
		for a := ""; a != string(decide.Start); {
			r.change(func(s decide.Snapshot) ([]updater.Change, error) {
				next := decide.Next(s, time.Now())
				a = string(next.Verb)
				return next.Changes, nil
			})
		}
		r.Await("all have finished", func(_ record.Request, all map[int]record.Status) bool {
			return all[1].Finished && all[2].Finished
		})
	})
}

// TestLookAtTheLate checks that a worker that waits for a late one reads only that worker's record. It
// reads all records once the late one has arrived, or the timeout is over.
func TestLookAtTheLate(t *testing.T) {
	r := newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))
	w := &worker{o: Options{Store: r.Store, LRN: 1}, claim: r.claim(1), clock: clock.New()}
	own := came(2)
	own.At = w.clock.Now()
	w.snapshot = Snapshot{LRN: 1, Current: request(nil), Status: &own, Steps: seated(2, nil).Steps, Timeout: time.Hour}
	put := func(lrn int, s record.Status) {
		t.Helper()
		r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Worker(lrn), s) })
	}
	look := func(what string, all int) {
		t.Helper()
		w.snapshot.Workers = nil
		if err := w.lookAtWorkers(t.Context()); err != nil || len(w.snapshot.Workers) != all || w.snapshot.LookedAt.IsZero() {
			t.Errorf("%s: it knows %d records, want %d: %v", what, len(w.snapshot.Workers), all, err)
		}
	}
	r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Current, *request(nil)) })
	put(1, own)
	put(2, came(1))
	put(10, came(2))
	look("at first", 3)
	look("2 is late", 0)
	w.snapshot.Timeout = 0
	look("2 is late, and the time is over", 3)
	w.snapshot.Timeout = time.Hour
	put(2, came(2))
	put(10, came(1))
	look("2 has come", 3)
	look("10 is late", 0)
	w.snapshot.Current.Servers = []int{1, 2}
	look("10 is waited for no more", 3)

	many := request(func(q *record.Request) { q.Servers = []int{1, 2, 3, 4, 5, 6, 10} })
	r.Update(func(tx *keyspace.Tx) error { return tx.Put(keys.Current, *many) })
	w.snapshot.Current, w.late = many, nil
	put(3, came(2))
	look("of many, 4 is late", 0)
	put(4, came(2))
	look("4 has come", 5)
}

// TestOneWorkerAFolder checks that only one worker can use a directory at a time.
func TestOneWorkerAFolder(t *testing.T) {
	r := newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))
	r.manifest = plan()
	dir := t.TempDir()
	r.worker(1, dir, &updatertest.Server{}, Options{})
	r.Eventually("the first is there", func() bool { return r.presences() == 1 })
	r.Eventually("the second is refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := Run(ctx, Options{Store: r.Open(), LRN: 1, Version: "1.1", Dir: dir, Server: &updatertest.Server{}, Manifest: r.manifest})
		return err != nil && strings.Contains(err.Error(), "another worker uses it")
	})
}
