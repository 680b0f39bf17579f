package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state/keyspace"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater/clock"
	"bijou/updater/keys"
	"bijou/updater/leader"
	"bijou/updater/release"
)

// rig is a store with workers and updaters over fake servers.
type rig struct {
	*updatertest.Rig
	manifest release.Manifest
	clock    clock.Clock // the clock of the next worker, or zero for the machine's
	rest     func()      // waits for so long that a forbidden action would happen
}

// overStores runs a test over each store that processes can share.
func overStores(t *testing.T, test func(r *rig)) {
	updatertest.OverStores(t, func(r *updatertest.Rig) { test(&rig{Rig: r, rest: func() {}}) })
}

// overStoresAndTime is overStores plus a run in memory with a fake clock. In that run, a rest ends when no
// goroutine has had work for a while, since after that nothing else happens.
func overStoresAndTime(t *testing.T, test func(r *rig)) {
	overStores(t, test)
	t.Run("mem", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(&rig{Rig: updatertest.InMemory(t), rest: func() { time.Sleep(10 * recheckInterval) }})
		})
	})
}

func newRig(t *testing.T, url string) *rig { return &rig{Rig: updatertest.NewRig(t, url)} }

// updater runs an updater, which can lead, until the test ends.
func (r *rig) updater() {
	ctx, cancel := context.WithCancel(context.Background())
	store := r.Open()
	done := make(chan error, 1)
	go func() { done <- leader.Run(ctx, leader.Options{Store: store, Version: "1.0"}) }()
	r.T.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.T.Error(err)
		}
	})
}

// worker runs a worker until stop is called.
func (r *rig) worker(lrn int, dir string, server Server, o Options) (stop func() error) {
	r.T.Helper()
	o.Store, o.LRN, o.Dir, o.Server, o.Manifest = r.Open(), lrn, dir, server, r.manifest
	o.Claimant.Folder = dir
	if o.Version == "" {
		o.Version = "1.1"
	}
	ctx, cancel := context.WithCancel(r.T.Context())
	var running sync.WaitGroup
	var err error
	c := r.clock
	if c == (clock.Clock{}) {
		c = clock.New()
	}
	running.Go(func() { err = runWorker(ctx, o, c) })
	stop = sync.OnceValue(func() error { cancel(); running.Wait(); return err })
	r.T.Cleanup(func() { _ = stop() })
	r.Eventually("the server was seen", func() (seen bool) {
		err := r.Store.View(r.T.Context(), func(v *keyspace.View) (err error) {
			_, seen, err = v.ClaimHolder(keys.Claim(lrn))
			return err
		})
		return seen && err == nil
	})
	return stop
}

// claim returns the claim for a test's partial worker.
func (r *rig) claim(lrn int) *keyspace.Claim {
	r.T.Helper()
	c, err := takeClaim(r.T.Context(), Options{Store: r.Store, LRN: lrn})
	if err != nil {
		r.T.Fatal(err)
	}
	return c
}
