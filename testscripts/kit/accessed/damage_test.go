package accessed

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"bijou/agent/uniter"
	"bijou/state"
	"bijou/state/access"
	"bijou/state/actions"
	"bijou/state/backupfile"
	"bijou/state/copying"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/logs"
	"bijou/state/secret/record"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

// writtenByAgents has a key for each pattern that agents write. They are keys of wordpress/0 and of its
// machine, which is machine 1.
func writtenByAgents(relation int) []string {
	sum := strings.Repeat("a", 64)
	return []string{
		"presence/machine-1", "presence/unit-wordpress-0", "claims/machine-1", "leaders/services/wordpress",
		"services/wordpress/status", "services/wordpress/leader-settings", "services/wordpress/secrets",
		"units/wordpress/0", "units/wordpress/0/ports", "units/wordpress/0/actions", "units/wordpress/0/secrets",
		"units/wordpress/0/storage", "units/wordpress/0/state", "units/wordpress/0/restored",
		"actions/0", "secrets/" + ofWordpress, "secret-contents/" + ofWordpress + "/1", "storage/data/0",
		"machines/1", "machines/1/storage",
		keys.Member(relation, "wordpress/0"), keys.Settings(relation, "wordpress/0"), keys.AppSettings(relation, "wordpress"),
		"uniters/wordpress/0/op", "uniters/wordpress/0/workflow", fmt.Sprintf("uniters/wordpress/0/relations/%d", relation),
		fmt.Sprintf("uniters/wordpress/0/relations/%d/mysql/0", relation), fmt.Sprintf("uniters/wordpress/0/services/%d/mysql", relation),
		"history/wordpress/0/0", "logs/machine-1", "logs/wordpress/0", "log/machine-1/0000000001", "log/wordpress/0/0000000001",
		"counters/actions", "counters/storage", "requests/wordpress/0/remove", fmt.Sprintf("requests/wordpress/0/end-%d", relation),
		"blob-heads/" + sum, "blobs/" + sum + "/0000",
	}
}

// ofWordpress is the id of a secret.
const ofWordpress = "0123456789abcdefghij"

// TestKeysAgentsWrite has a key above for each row that agents write.
func TestKeysAgentsWrite(t *testing.T) {
	known := map[string]bool{}
	for _, key := range writtenByAgents(0) {
		for _, op := range []access.Op{access.Put, access.Lease} {
			if right, ok := access.RightOf(op, key); ok {
				known[right.Pattern] = true
			}
		}
	}

	for _, right := range access.Rights() {
		if (right.Op == access.Put || right.Op == access.Lease) && !known[right.Pattern] {
			t.Errorf("no key of %q is in writtenByAgents", right.Pattern)
		}
	}
}

// readByOthers are the lists that the leader, operators and the agents of other machines read.
func readByOthers(relation int) map[string]func(ctx context.Context, s *state.State) error {
	view := func(f func(v *state.View) error) func(context.Context, *state.State) error {
		return func(ctx context.Context, s *state.State) error { return s.View(ctx, f) }
	}
	discard := func(_ any, err error) error { return err }

	return map[string]func(ctx context.Context, s *state.State) error{
		"status": view(func(v *state.View) error { return discard(status.Read(v, status.Options{Now: time.Now()})) }),
		"status of a service": view(func(v *state.View) error {
			return discard(status.Read(v, status.Options{Now: time.Now(), Globs: []string{"mysql"}, Related: true}))
		}),
		"units":    view(func(v *state.View) error { return discard(v.Units("")) }),
		"machines": view(func(v *state.View) error { return discard(v.Machines()) }),
		"storages": view(func(v *state.View) error { return discard(v.Storages()) }),
		"actions":  view(func(v *state.View) error { return discard(actions.List(v, "")) }),
		"requests": view(func(v *state.View) error { return discard(v.Requests()) }),
		"secrets":  view(func(v *state.View) error { return discard(record.All(v)) }),
		"logs":     view(func(v *state.View) error { return discard(logs.Read(v, logs.Filter{})) }),
		"new logs": view(func(v *state.View) error {
			_, _, err := logs.ReadNew(v, logs.Filter{After: map[string]int64{}}, func(string) bool { return true })
			return err
		}),
		"history": view(func(v *state.View) error {
			_, _, err := v.RecentHookRuns(time.Time{})
			return err
		}),
		"blobs":                view(func(v *state.View) error { return discard(v.ReferencedBlobs()) }),
		"members":              view(func(v *state.View) error { return discard(v.Members(relation)) }),
		"the agent of mysql/0": view(func(v *state.View) error { return discard(uniter.Owed(v, "mysql/0")) }),
		"sweep": func(ctx context.Context, s *state.State) error {
			return sweep.Run(ctx, s, time.Now().Add(30*24*time.Hour))
		},
		"backup": func(ctx context.Context, s *state.State) error {
			return discard(copying.Backup(ctx, s, backupfile.NewWriter(&bytes.Buffer{})))
		},
	}
}

// TestDamageStopsNobodyElse checks that an agent that writes bad values under its own keys breaks no list
// that others read.
func TestDamageStopsNobodyElse(t *testing.T) {
	bad := map[string]string{
		"garbage": `x`, "nothing": ``, "a list": `[{}]`, "a text": `"x"`, "a number": `-1.5`, "texts for all": `{"%s":"x"}`, "numbers for all": `{"%s":7}`,
	}
	members := []string{
		"life", "machine", "session", "epoch", "version", "values", "status", "all", "owned", "unit", "kind", "since", "relation", "first",
		"batch", "lines", "size", "owner", "revisions", "waiting", "state", "hook", "failure", "charm", "addresses", "seq", "trouble", "holder", "output", "data",
	}

	for name, value := range bad {
		if strings.Contains(value, "%s") {
			all := []string{}
			for _, m := range members {
				all = append(all, strings.Trim(fmt.Sprintf(value, m), "{}"))
			}
			value = "{" + strings.Join(all, ",") + "}"
		}

		t.Run(name, func(t *testing.T) {
			st := statetest.New(t)
			relation := statetest.Pair(t, st).ID
			statetest.Enter(t, st, relation, "mysql/0", nil)
			statetest.Enter(t, st, relation, "wordpress/0", nil)
			st.SetDamaged(func(error) {})

			for _, key := range writtenByAgents(relation) {
				before := raw(t, st.Keys(), key)
				replace(t, st, key, []byte(value))
				for what, read := range readByOthers(relation) {
					if err := read(t.Context(), st); err != nil {
						t.Errorf("%s, with a bad value of %s: %v", what, key, err)
					}
				}

				replace(t, st, key, before)
			}
		})
	}
}

// replace replaces a record with another one, or deletes it if the new one is nil.
func replace(t *testing.T, st *state.State, key string, value []byte) {
	t.Helper()
	commit(t, st.Store(), store.Op{Key: key, Delete: true})
	if value != nil {
		commit(t, st.Store(), store.Op{Key: key, Value: value})
	}
}

func raw(t *testing.T, s *keyspace.Space, key string) (value []byte) {
	t.Helper()
	err := s.View(t.Context(), func(v *keyspace.View) error {
		kv, err := v.GetKV(key)
		value = kv.Value
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}
