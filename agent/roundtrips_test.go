package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// countingStore counts the calls that would be round trips to a remote store: each commit, each list, each
// group of keys that is prefetched together, and each other key. It does not count the log of hooks.
type countingStore struct {
	store.Store
	mu    sync.Mutex
	trips []string
}

func (c *countingStore) count(what string, keys ...string) {
	ofLog := func(key string) bool { return strings.HasPrefix(key, "log/") || strings.HasPrefix(key, "logs/") }
	if slices.ContainsFunc(keys, ofLog) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trips = append(c.trips, what+" "+strings.Join(keys, " "))
}

// take returns the round trips since the last call.
func (c *countingStore) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.trips = nil }()
	return c.trips
}

type countingSnapshot struct {
	store.Snapshot
	c   *countingStore
	has map[string]bool
}

func (c *countingStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := c.Store.Snapshot(ctx)
	return &countingSnapshot{Snapshot: s, c: c, has: map[string]bool{}}, err
}

func (s *countingSnapshot) Prefetch(ctx context.Context, next store.Scope) error {
	names := slices.Concat(next.Keys, next.Prefixes)
	s.c.count("prefetch", names...)
	for _, name := range names {
		s.has[name] = true
	}
	return s.Snapshot.Prefetch(ctx, next)
}

func (s *countingSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if !s.has[key] {
		s.c.count("get", key)
	}
	return s.Snapshot.Get(ctx, key)
}

func (s *countingSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if !s.has[prefix] {
		s.c.count("list", prefix)
	}
	return s.Snapshot.List(ctx, prefix)
}

func (c *countingStore) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	var keys []string
	for _, op := range txn.Ops {
		keys = append(keys, op.Key)
	}
	c.count("commit", keys...)
	return c.Store.Commit(ctx, txn)
}

// TestRoundTrips checks the round trips of a hook to its store. A hook makes up to two to read the changes, one to begin,
// and one to record its outcome. It makes one more for each settings node that it reads. A hook that follows another one
// begins with the commit that ends the first.
func TestRoundTrips(t *testing.T) {
	once(t, func(r *rig) {
		c := &countingStore{}
		r.agents = statetest.ShareWrapped(r.st, func(s store.Store) store.Store { c.Store = s; return c })
		r.manual()
		hub := statetest.Meta("hub", "provides:\n  link: wire\n")
		hub["config.yaml"] = "options:\n  word: {type: string}\n"
		statetest.AddService(t, r.st, r.recorder(hub, hooks("link"), map[string]string{
			"link-relation-changed": "relation-get - $JUJU_REMOTE_UNIT > /dev/null; relation-get a $JUJU_REMOTE_UNIT",
		}), 1)
		statetest.AddService(t, r.st, statetest.Meta("leaf", "requires:\n  up: wire\n"), 1)
		relation := statetest.Relate(t, r.st, "hub:link", "leaf:up")
		r.start()
		r.settle()
		configure := func(tx *state.Tx, word string) error {
			_, err := tx.SetConfig("hub", map[string]any{"word": word})
			return err
		}
		set := func(tx *state.Tx, a string) error {
			_, err := tx.MergeSettings(relation.ID, "leaf/0", map[string]*string{"a": new(a)})
			return err
		}
		for _, change := range []struct {
			name           string
			make           func(tx *state.Tx) error
			hooks          int
			commits, trips int // upper limits
		}{
			{"config-changed", func(tx *state.Tx) error { return configure(tx, "a") }, 1, 2, 4},
			{"link-relation-changed", func(tx *state.Tx) error { return set(tx, "1") }, 1, 2, 4},
			{"both", func(tx *state.Tx) error { return errors.Join(configure(tx, "b"), set(tx, "2")) }, 2, 3, 7},
		} {
			c.take()
			n := len(r.noted("hub/0"))
			r.update(change.make)
			r.eventually(change.name+" is done", func() bool {
				return len(r.noted("hub/0")) == n+change.hooks && r.uniter("hub/0").Op == nil && r.settled("hub/0")
			})
			trips := c.take()
			commits := 0
			for _, trip := range trips {
				if strings.HasPrefix(trip, "commit ") {
					commits++
				}
			}
			if len(trips) > change.trips || commits > change.commits {
				t.Errorf("%s: %d round trips, %d of them commits; want %d and %d at most:\n%s",
					change.name, len(trips), commits, change.trips, change.commits, strings.Join(trips, "\n"))
			}
		}
	})
}

// TestActionsMeetNoConflict checks that an agent ends each action with one commit, even though an
// operator wrote the action's record.
func TestActionsMeetNoConflict(t *testing.T) {
	once(t, func(r *rig) {
		c := &countingStore{}
		r.agents = statetest.ShareWrapped(r.st, func(s store.Store) store.Store { c.Store = s; return c })
		r.manual()
		statetest.AddService(t, r.st, statetest.Meta("app", ""), 1)
		r.start()
		r.settle()
		for n := range 3 {
			c.take()
			statetest.Update(t, r.st, func(tx *state.Tx) error {
				_, err := actions.Add(tx, actions.Action{Unit: "app/0", Command: []string{"true"}}, time.Now())
				return err
			})
			r.settle()
			trips := c.take()
			commits := slices.DeleteFunc(slices.Clone(trips), func(trip string) bool { return !strings.HasPrefix(trip, "commit ") })
			if len(commits) != 2 {
				t.Errorf("action %d: %d commits, want one that begins it and one that ends it:\n%s", n, len(commits), strings.Join(trips, "\n"))
			}
		}
	})
}
