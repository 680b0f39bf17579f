package agent

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// witness is a store that records all reads and writes through it.
type witness struct {
	store.Store

	mu      sync.Mutex
	reads   map[string]int // by key
	commits []store.Txn
}

// witnessed makes the agent use its store through a witness.
func (r *rig) witnessed() *witness {
	w := &witness{reads: map[string]int{}}
	r.agents = statetest.ShareWrapped(r.st, func(s store.Store) store.Store {
		w.Store = s
		return w
	})
	return w
}

func (w *witness) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	w.mu.Lock()
	w.commits = append(w.commits, txn)
	w.mu.Unlock()
	return w.Store.Commit(ctx, txn)
}

func (w *witness) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := w.Store.Snapshot(ctx)
	return witnessedReads{s, w}, err
}

type witnessedReads struct {
	store.Snapshot
	w *witness
}

func (s witnessedReads) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.w.mu.Lock()
	s.w.reads[key]++
	s.w.mu.Unlock()
	return s.Snapshot.Get(ctx, key)
}

// wrote returns the keys whose committed values contained the text.
func (w *witness) wrote(text string) (keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, txn := range w.commits {
		for _, op := range txn.Ops {
			if bytes.Contains(op.Value, []byte(text)) {
				keys = append(keys, op.Key)
			}
		}
	}
	return keys
}

// TestHundredReadsAreOne checks that the store is read once if a hook reads a settings node a hundred times.
func TestHundredReadsAreOne(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		gate, open := r.gate("changed")
		r.recordPair(map[string]string{
			"db-relation-changed": gate + `
				for i in $(seq 100); do
					[ "$(relation-get user)" = root ] || exit 1
				done
				relation-set read=100`,
		})
		id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
		r.start()
		r.awaitNote("mysql/0", "server-relation-joined wordpress/0 [wordpress/0]")
		r.eventually("the hook has failed", func() bool { return r.uniter("wordpress/0").Relations[id].Failure != nil })
		r.settle()
		r.end()
		open()
		w := r.witnessed()
		r.resolve("wordpress/0", "db", true)
		r.start()
		r.eventually("the hook has read", func() bool { return r.settings(id, "wordpress/0")["read"] == "100" })
		r.settle()
		r.end()
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := w.reads[fmt.Sprintf("relations/%d/settings/mysql/0", id)]; n != 1 {
			t.Errorf("the store was asked for mysql's settings %d times", n)
		}
	})
}

// TestFailedHookIsNeverSeen checks that no commit contains the values that a failed hook has set, whatever
// their size and however the hook ended.
func TestFailedHookIsNeverSeen(t *testing.T) {
	for name, end := range map[string]string{"it exits": "exit 3", "it is killed": "kill -9 $$"} {
		t.Run(name, func(t *testing.T) {
			once(t, func(r *rig) {
				w := r.witnessed()
				r.manual()
				r.recordPair(map[string]string{
					"db-relation-joined": `relation-set small=unseen password=unseen; relation-set kept=
						{ printf 'large: '; head -c 200000 /dev/zero | tr '\0' u; } | relation-set --file -
						relation-set -r "$JUJU_RELATION_ID" mysql/0 theirs=unseen 2>/dev/null
						open-port 4711; ` + end,
				})
				id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
				r.start()
				r.eventually("the hook has failed", func() bool { return r.uniter("wordpress/0").Relations[id].Failure != nil })
				r.resolve("wordpress/0", "db", false)
				r.eventually("wordpress goes on", func() bool { return r.settings(id, "wordpress/0")["got"] == "root" })
				r.settle()
				r.end()
				for _, text := range []string{"unseen", ":4711", strings.Repeat("u", 1000)} {
					if keys := w.wrote(text); len(keys) > 0 {
						t.Errorf("what the failed hook set was written to %q", keys)
					}
				}
			})
		})
	}
}

// TestEqualValuesAreNoChange checks that writing equal values changes no version and causes no hook.
func TestEqualValuesAreNoChange(t *testing.T) {
	twice(t, func(r *rig) {
		r.recordPair(map[string]string{
			"config-changed": `for r in $(relation-ids db); do
				relation-set -r "$r" got=else; relation-set -r "$r" got=root fresh=; done`,
		})
		id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
		r.start()
		r.awaitNote("mysql/0", "server-relation-changed wordpress/0 [wordpress/0]")
		r.eventually("wordpress answers", func() bool { return r.settings(id, "wordpress/0")["got"] == "root" })
		r.settle()
		version := r.version(id, "wordpress/0")
		before := r.noted("mysql/0")
		r.update(func(tx *state.Tx) error {
			_, err := tx.SetConfig("wordpress", map[string]any{"title": "Other"})
			return err
		})
		r.eventually("config-changed has run again", func() bool {
			return strings.Count(strings.Join(r.noted("wordpress/0"), "\n"), "config-changed") == 2
		})
		r.settle()
		if got := r.version(id, "wordpress/0"); got != version {
			t.Errorf("equal values made version %d of %d", got, version)
		}
		if diff := cmp.Diff(before, r.noted("mysql/0")); diff != "" {
			t.Errorf("hooks of the other side: %s", diff)
		}
	})
}

func (r *rig) version(relation int, unit string) int64 {
	return statetest.Read(r.t, r.st, func(v *state.View) (state.Settings, error) { return v.Settings(relation, unit) }).Version
}
