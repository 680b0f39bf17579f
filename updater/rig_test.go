package updater

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/etcdtest"
	"bijou/updater/clock"
	"bijou/updater/record"
	"bijou/updater/release"
)

// rig is a store with workers, whose servers are fake.
type rig struct {
	t        *testing.T
	url      string
	store    *state.Keyspace // the test's own
	manifest release.Manifest
	clock    clock.Clock // of the next worker; zero: the machine's
}

const rigLimit = 60 * time.Second // many times what anything here takes

// overStores runs a test over each store that processes can share.
func overStores(t *testing.T, test func(r *rig)) {
	t.Run("sqlite", func(t *testing.T) { test(newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "neco.db"))) })
	t.Run("etcd", func(t *testing.T) {
		test(newRig(t, etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/neco")))
	})
}

func newRig(t *testing.T, url string) *rig {
	t.Helper()
	if _, err := InitStore(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, url: url}
	r.store = r.open()
	return r
}

// open is a process's own opener.
func (r *rig) open() *state.Keyspace {
	r.t.Helper()
	s, err := OpenStore(r.t.Context(), r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (r *rig) update(f func(tx *state.KeyTx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// begin has the servers registered and a version asked for.
func (r *rig) begin(version string, lrns ...int) {
	r.t.Helper()
	r.update(func(tx *state.KeyTx) error {
		for _, n := range lrns {
			if err := tx.Put(Keys().BootServer(n), struct{}{}); err != nil {
				return err
			}
		}
		return tx.Put(Keys().Target(), record.Target{Version: version})
	})
}

// worker runs a worker until the function that it returns is called.
func (r *rig) worker(lrn int, dir string, server Server, o WorkerOptions) (stop func() error) {
	r.t.Helper()
	o.Store, o.LRN, o.Dir, o.Server, o.Manifest = r.open(), lrn, dir, server, r.manifest
	o.Claimant.Folder = dir
	if o.Version == "" {
		o.Version = "1.1"
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	var err error
	c := r.clock
	if c == (clock.Clock{}) {
		c = clock.New()
	}
	running.Go(func() { err = runWorker(ctx, o, c) })
	stop = sync.OnceValue(func() error { cancel(); running.Wait(); return err })
	r.t.Cleanup(func() { _ = stop() })
	r.eventually("the server was seen", func() (seen bool) {
		err := r.store.View(r.t.Context(), func(v *state.KeyView) (err error) {
			_, seen, err = v.ClaimHolder(Keys().Claim(lrn))
			return err
		})
		return seen && err == nil
	})
	return stop
}

// claim is the claim of a worker that is only a part of one.
func (r *rig) claim(lrn int) *state.KeyClaim {
	r.t.Helper()
	c, err := takeClaim(r.t.Context(), WorkerOptions{Store: r.store, LRN: lrn})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// await waits until the request is as wanted.
func (r *rig) await(what string, ok func(q record.Request, workers map[int]record.Status) bool) {
	r.t.Helper()
	var q *record.Request
	var all map[int]record.Status
	for end := time.Now().Add(rigLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err := r.store.View(r.t.Context(), func(v *state.KeyView) (err error) {
			if q, err = LoadRequest(v); err == nil {
				all, err = LoadWorkers(v)
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
		if q != nil && ok(*q, all) {
			return
		}
	}
	r.t.Fatalf("it never came true: %s: %+v, %+v", what, q, all)
}

func succeeded(q record.Request, _ map[int]record.Status) bool { return q.Succeeded() }

// fake is a server on which every step is noted, and may be made to fail or hang.
type fake struct {
	mu      sync.Mutex
	did     []string
	needs   map[string]bool
	fail    map[string]error
	hang    map[string]bool // until its context is done
	on      func(what string)
	noCheck bool // of members
	ill     map[int]error
}

func (f *fake) do(ctx context.Context, what string) error {
	f.mu.Lock()
	f.did = append(f.did, what)
	err, hang, on := f.fail[what], f.hang[what], f.on
	f.mu.Unlock()
	if on != nil {
		on(what)
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.did)
}

func (f *fake) Configure(record.Config) error { return nil }

func (f *fake) Differences(context.Context, release.Component) ([]string, error) { return nil, nil }

func (f *fake) NeedsUpdate(_ context.Context, c release.Component) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.needs[c.Name], nil
}

func (f *fake) Prepare(context.Context, release.Component) error { return nil }

func (f *fake) Stop(ctx context.Context, c release.Component) error {
	return f.do(ctx, c.Name+"/stop")
}

func (f *fake) Update(ctx context.Context, c release.Component) error {
	err := f.do(ctx, c.Name+"/update")
	if err == nil {
		f.set(func() { delete(f.needs, c.Name) })
	}
	return err
}

func (f *fake) CheckHealth(context.Context, release.Component) error { return nil }

func (f *fake) IsRunning(context.Context, release.Component) bool { return true }

func (f *fake) CheckMembers(context.Context, release.Component, []int) (map[int]error, bool) {
	return f.ill, !f.noCheck
}

func (f *fake) DeliverContents(ctx context.Context, c release.Component) error {
	return f.do(ctx, c.Contents.Key+"/bring")
}
