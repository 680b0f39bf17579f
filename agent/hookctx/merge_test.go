package hookctx_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestNoUpdateIsLost checks that no write is lost when two units run hook after hook at the same time. In one
// relation, each unit writes its own settings, and both also write mysql's settings.
func TestNoUpdateIsLost(t *testing.T) {
	hooks := 500 // the number of hooks of each unit
	if testing.Short() {
		hooks = 50
	}
	statetest.Each(t, func(t *testing.T, st *state.State) {
		id := statetest.Pair(t, st).ID
		statetest.Enter(t, st, id, "mysql/0", nil)
		statetest.Enter(t, st, id, "wordpress/0", nil)
		var wait sync.WaitGroup
		for _, unit := range []string{"mysql/0", "wordpress/0"} {
			wait.Go(func() {
				for i := range hooks {
					if err := runHook(t, st, id, unit, i); err != nil {
						t.Errorf("hook %d of %s: %v", i, unit, err)
						return
					}
				}
			})
		}
		wait.Wait()
		for unit, writers := range map[string][]string{"mysql/0": {"mysql/0", "wordpress/0"}, "wordpress/0": {"wordpress/0"}} {
			want := map[string]string{}
			for _, writer := range writers {
				for i := range hooks {
					want[fmt.Sprintf("%s.%d", writer, i)] = fmt.Sprint(i)
				}
				want[writer+".last"] = fmt.Sprint(hooks - 1)
			}
			got := statetest.Read(t, st, func(v *state.View) (state.Settings, error) { return v.Settings(id, unit) })
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got.Values))); diff != "" {
				t.Errorf("keys of %s (-want +got):\n%s", unit, diff)
			}
			if diff := cmp.Diff(want, got.Values); diff != "" {
				t.Errorf("settings of %s (-want +got):\n%s", unit, diff)
			}
			if commits := int64(len(writers) * hooks); got.Version != commits+1 {
				t.Errorf("%s has version %d after %d commits that changed it", unit, got.Version, commits)
			}
		}
	})
}

// runHook runs one hook from its first tool to its commit.
func runHook(t *testing.T, st *state.State, id int, unit string, i int) error {
	c := hookctx.New(hookctx.Options{
		State: st, Update: st.Update, Log: func(string, string) {},
		Facts: hookapi.Facts{Unit: unit, Service: unit[:len(unit)-2], Hook: "config-changed", Relation: hookapi.NoRelation},
	})
	value := fmt.Sprint(i)
	changes := map[string]*string{fmt.Sprintf("%s.%d", unit, i): &value, unit + ".last": &value}
	for _, node := range []string{unit, "mysql/0"} {
		if err := c.SetSettings(t.Context(), hookapi.Node{Relation: id, Unit: node}, changes); err != nil {
			return err
		}
	}
	return st.Update(t.Context(), func(tx *state.Tx) error { _, err := c.AddTo(t.Context(), tx); return err })
}
