package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/store"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// faulty is a store whose commits, snapshots and watches fail or hang on request. It numbers the calls from
// 0.
type faulty struct {
	store.Store
	// commit and read run before each call. The call returns their error, if any.
	commit func(ctx context.Context, n int) error
	read   func(ctx context.Context, n int) error
	// after runs after each commit. Its error hides that the commit succeeded.
	after func(n int) error

	mu      sync.Mutex
	commits int
	reads   int
	leases  []store.Lease
}

var errOutage = errors.New("the store is away")

// throughFaults opens the environment again, through a faulty store.
func throughFaults(st *state.State, f *faulty) *state.State {
	return statetest.ShareWrapped(st, func(s store.Store) store.Store {
		f.Store = s
		return f
	})
}

func (f *faulty) number(counter *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	*counter++
	return *counter - 1
}

func (f *faulty) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	n := f.number(&f.commits)
	if f.commit != nil {
		if err := f.commit(ctx, n); err != nil {
			return 0, err
		}
	}
	revision, err := f.Store.Commit(ctx, txn)
	if err == nil && f.after != nil {
		err = f.after(n)
	}
	return revision, err
}

func (f *faulty) Snapshot(ctx context.Context) (store.Snapshot, error) {
	n := f.number(&f.reads)
	if f.read != nil {
		if err := f.read(ctx, n); err != nil {
			return nil, err
		}
	}
	return f.Store.Snapshot(ctx)
}

func (f *faulty) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	l, err := f.Store.Lease(ctx, ttl)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leases = append(f.leases, l)
	return l, err
}

// loseLeases ends all leases, as an outage that is longer than their TTL would.
func (f *faulty) loseLeases(t *testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.leases {
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAgentEndsWhileItsStoreStalls checks that an agent can still be stopped when its store no longer
// answers. The first call that hangs is the announcement after a lost session.
func TestAgentEndsWhileItsStoreStalls(t *testing.T) {
	need.Whole(t)
	for _, stalling := range []string{"commits", "everything"} {
		t.Run(stalling, func(t *testing.T) {
			r := newRig(t, statetest.New(t))
			var stalls atomic.Bool
			stalled := make(chan struct{}, 2) // buffered, because the calling goroutine must not wait
			stall := func(ctx context.Context, _ int) error {
				if !stalls.Load() {
					return nil
				}
				select {
				case stalled <- struct{}{}:
				default:
				}
				<-ctx.Done()
				return ctx.Err()
			}
			f := &faulty{commit: stall}
			if stalling == "everything" {
				f.read = stall
			}
			r.agents = throughFaults(r.st, f)
			r.pair()
			r.start()
			r.settle()
			stalls.Store(true)
			f.loseLeases(t)
			receive(t, "the announcement stalls", stalled)
			off := "0"
			r.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.StatusInterval: &off}) })
			r.update(func(tx *state.Tx) error {
				_, err := tx.SetConfig("wordpress", map[string]any{"title": "Other"})
				return err
			})
			receive(t, "a unit stalls", stalled)
			r.end()
		})
	}
}

// TestPairOverAStoreThatFails runs a pair of units from install to stop while one commit in ten and one
// snapshot in twelve fail. Half of the failed commits have been carried out.
func TestPairOverAStoreThatFails(t *testing.T) {
	need.Whole(t)
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			var mu sync.Mutex
			dice := rand.New(rand.NewPCG(seed, 0))
			outage := func(of int) error {
				mu.Lock()
				defer mu.Unlock()
				if dice.IntN(of) == 0 {
					return errOutage
				}
				return nil
			}
			r := newRig(t, statetest.New(t))
			r.agents = throughFaults(r.st, &faulty{
				commit: func(context.Context, int) error { return outage(20) },
				after:  func(int) error { return outage(20) },
				read:   func(context.Context, int) error { return outage(12) },
			})
			r.wholeLife()
		})
	}
}

// wholeLife runs a pair from install to stop. It checks that the hooks ran in order, that none was skipped,
// and that none ran again after it had succeeded.
func (r *rig) wholeLife() {
	t := r.t
	r.recordPair(map[string]string{ // a failed tool would fail the hook, which is a different test
		"server-relation-joined": "until relation-set user=root password=s3cret; do sleep 0.02; done",
		"db-relation-changed":    `until user=$(relation-get user) && relation-set got="$user"; do sleep 0.02; done`,
	})
	id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
	r.start()
	r.awaitNote("mysql/0", "server-relation-changed wordpress/0 [wordpress/0]")
	r.eventually("wordpress answers", func() bool { return r.settings(id, "wordpress/0")["got"] == "root" })
	r.settle()
	r.update(func(tx *state.Tx) error { return tx.DestroyRelation(id) })
	r.awaitNote("mysql/0", "server-relation-broken []")
	r.awaitNote("wordpress/0", "db-relation-broken []")
	r.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyUnit("mysql/0"), tx.DestroyUnit("wordpress/0")) })
	r.eventually("both units are gone", func() bool {
		return len(statetest.Read(t, r.st, func(v *state.View) ([]state.Unit, error) { return v.Units("") })) == 0
	})
	r.end()
	want := []string{
		"install", "config-changed", "start", "server-relation-joined wordpress/0 [wordpress/0]", "server-relation-changed wordpress/0 [wordpress/0]",
		"server-relation-changed wordpress/0 [wordpress/0]", "server-relation-departed wordpress/0 []", "server-relation-broken []", "stop",
	}
	if got := r.noted("mysql/0"); !slices.Equal(withoutChanged(got), withoutChanged(want)) {
		t.Errorf("mysql/0: %q, want %q", got, want)
	}
	if n := len(r.noted("mysql/0")); n > len(want) {
		t.Errorf("mysql/0 ran %d hooks: %q", n, r.noted("mysql/0"))
	}
}

// withoutChanged merges changed hooks that follow each other, since their number depends on timing.
func withoutChanged(notes []string) []string { return slices.Compact(slices.Clone(notes)) }
