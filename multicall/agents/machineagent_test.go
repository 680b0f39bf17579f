package agents

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/agent"
	"bijou/multicall/daemon"
	"bijou/provision"
	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/store"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/statetest"
)

// recordingStore is a store that records the order of new leases and of writes of presence and leadership.
type recordingStore struct {
	store.Store
	mu     sync.Mutex
	steps  []string
	leases []store.Lease
}

func (n *recordingStore) record(steps ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.steps = append(n.steps, steps...)
}

func (n *recordingStore) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	l, err := n.Store.Lease(ctx, ttl)
	n.record("lease")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leases = append(n.leases, l)
	return l, err
}

func (n *recordingStore) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	revision, err := n.Store.Commit(ctx, txn)
	for _, o := range txn.Ops {
		if err == nil && o.Lease != 0 {
			n.record(o.Key)
		}
	}
	return revision, err
}

// stepsSince returns the recorded steps without the first n.
func (n *recordingStore) stepsSince(already int) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.steps[already:])
}

// endLease ends the newest lease, as an outage that is longer than its TTL would.
func (n *recordingStore) endLease(t *testing.T) (already int) {
	n.mu.Lock()
	already, lease := len(n.steps), n.leases[len(n.leases)-1]
	n.mu.Unlock()
	if err := lease.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return already
}

// nobody is a provider without instances.
type nobody struct{ provider.Provider }

func (nobody) Instances(context.Context) ([]provider.Instance, error) { return nil, nil }

// TestOneLeaseForAllRoles runs the roles of machine 0. They must share one lease. After the loss of the
// lease, the process must first create a new lease, then write the presence, and then campaign.
func TestOneLeaseForAllRoles(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var n recordingStore
	st := statetest.ShareWrapped(statetest.New(t), func(s store.Store) store.Store {
		n.Store = s
		return &n
	})
	session := state.NewSharedSession(st, true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- daemon.RunRoles(ctx, []daemon.Role{
			func(ctx context.Context) error {
				return agent.RunMachine(ctx, agent.MachineOptions{Machine: "0", Process: session, Options: agent.Options{State: st, Dir: t.TempDir()}})
			},
			func(ctx context.Context) error {
				return provision.Run(ctx, provision.Options{State: st, Process: session, Provider: nobody{}})
			},
		})
	}()
	const presence, leader = "presence/machine-0", "leaders/provisioner"
	awaitSteps(t, &n, 0, presence, leader)
	already := n.endLease(t)
	got := awaitSteps(t, &n, already, presence, leader)
	if want := []string{"lease", presence, leader}; !slices.Equal(got, want) {
		t.Errorf("after the loss: %q, want %q", got, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	endSession(t.Context(), session)
	if leases := strings.Count(strings.Join(n.stepsSince(0), "\n"), "lease"); leases != 2 {
		t.Errorf("%d leases were made, want one, and one more after the loss", leases)
	}
	statetest.View(t, st, func(v *state.View) error {
		if here, err := v.IsPresent("machine-0"); err != nil || here {
			t.Errorf("after the end, present: %v, %v", here, err)
		}
		return nil
	})
}

// awaitSteps waits until all of these steps are recorded, in addition to the first n.
func awaitSteps(t *testing.T, n *recordingStore, already int, want ...string) (got []string) {
	t.Helper()
	await.Until(t, await.Poll{Limit: 2 * time.Minute}, "the steps are noted", func() string {
		got = n.stepsSince(already)
		missing := slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) })
		return await.Unless(!missing, "noted %q, want %q in it", got, want)
	})
	return got
}
