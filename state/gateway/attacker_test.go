package gateway_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/state/access"
	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/fakes/memstore"
)

// attackedKeys returns a state with the leader a/0 on the attacker's machine 1, its relation with b/0 on
// machine 2, and keys that belong to no machine. The tests of state/access have a larger world.
func attackedKeys() map[string]string {
	all := map[string]string{
		"format": `{"format":1}`, "environment": `{"name":"a","tools":"1-a"}`, "migrating": `{}`, "provisioner": `{}`,
		"leaders/provisioner": `{"session":"S0"}`, "leaders/services/a": `{"session":"S1","unit":"a/0"}`, "leaders/services/b": `{"session":"S2","unit":"b/0"}`,
		"tools/1-a": `{}`, "counters/machines": `3`, "counters/actions": `2`, "secret-keys/newest": `{}`, "anything/else": `{}`,
		"relations/0": `{"scope":"global","life":"alive","endpoints":[{"service":"a","name":"db"},{"service":"b","name":"db"}]}`,
		"relations/1": `{"scope":"global","life":"alive","endpoints":[{"service":"b","name":"x"},{"service":"c","name":"x"}]}`,
	}
	for machine, s := range map[string]string{"1": "a", "2": "b", "3": "c"} {
		unit := s + "/0"
		maps.Copy(all, map[string]string{
			"machines/" + machine: `{"series":"noble","life":"alive","instance-id":"i","status":"pending"}`, "machines/" + machine + "/units/" + unit: ``,
			"machines/" + machine + "/storage": `{"all":[]}`, "presence/machine-" + machine: `{"session":"S"}`, "presence/unit-" + s + "-0": `{"session":"S"}`,
			"claims/machine-" + machine: `{"epoch":3}`, "charms/local:noble/" + s + "-1": `{}`,
			"services/" + s: `{"charm":"local:noble/` + s + `-1","dialect":"modern","life":"alive"}`, "services/" + s + "/config": `{"version":1}`,
			"services/" + s + "/status": `{"status":"active"}`, "services/" + s + "/leader-settings": `{"version":1}`,
			"units/" + unit: `{"charm":"local:noble/` + s + `-1","machine":"` + machine + `","life":"alive"}`, "units/" + unit + "/ports": `[]`,
			"units/" + unit + "/state": `{"version":1}`, "units/" + unit + "/actions": `{}`, "uniters/" + unit + "/op": `{}`, "uniters/" + unit + "/workflow": `{}`,
			"history/" + unit + "/0": `{}`, "logs/" + unit: `{"batch":1}`, "log/" + unit + "/0000000001": `{}`, "logs/machine-" + machine: `{"batch":1}`,
			"relations/0/settings/" + unit: `{"version":1}`, "relations/1/settings/" + unit: `{"version":1}`, "relations/0/members/" + unit: `{"version":1}`,
			"relations/0/apps/" + s: `{"version":1}`, "requests/" + unit + "/end-0": `{}`, "spares/" + machine: `{}`,
		})
	}
	return all
}

// attacker is an attacker with root on machine 1, who can use the machine's socket.
type attacker struct {
	*world
	socket store.Store
	lease  store.Lease
	before map[string]string

	revision int64 // the newest revision
}

func newAttacker(t *testing.T) *attacker {
	t.Helper()
	a := &attacker{world: &world{T: t, base: memstore.New(), dir: t.TempDir()}, before: attackedKeys()}
	t.Cleanup(func() { a.base.Close() })
	var err error
	a.g, err = gateway.New(a.base, gateway.Table{})
	a.ok(err)
	e, err := a.g.Listen(gateway.Agent("1"), filepath.Join(a.dir, "socket"))
	a.ok(err)
	t.Cleanup(e.Close)
	a.socket, err = remote.Open(t.Context(), "bijou+unix://"+filepath.Join(a.dir, "socket"))
	a.ok(err)
	t.Cleanup(func() { a.socket.Close() })
	a.restore()
	a.lease, err = a.socket.Lease(t.Context(), time.Minute)
	a.ok(err)
	return a
}

// restore restores the state from before an attempt.
func (a *attacker) restore() {
	a.Helper()
	var txn store.Txn
	for key, value := range a.before {
		txn.Ops = append(txn.Ops, store.Op{Key: key, Value: []byte(value)})
	}
	for ops := range slices.Chunk(txn.Ops, 100) {
		revision, err := a.base.Commit(a.Context(), store.Txn{Ops: ops})
		a.ok(err)
		a.revision = revision
	}
}

// Get and List read the state for the table, whose decisions are compared with the gateway's.
func (a *attacker) Get(key string) ([]byte, error) {
	value, ok := a.before[key]
	if !ok {
		return nil, nil
	}
	return []byte(value), nil
}

func (a *attacker) List(prefix string) (map[string][]byte, error) {
	found := map[string][]byte{}
	for key, value := range a.before {
		if strings.HasPrefix(key, prefix) {
			found[key] = []byte(value)
		}
	}
	return found, nil
}

// attempt makes one request through the socket.
func (a *attacker) attempt(ctx context.Context, op access.Op, key, value string) error {
	switch op {
	case access.Get, access.List:
		snap, err := a.socket.Snapshot(ctx)
		a.ok(err)
		defer snap.Close()
		if op == access.Get {
			_, _, err = snap.Get(ctx, key)
			return err
		}
		kvs, err := snap.List(ctx, key)
		for _, kv := range kvs {
			if err := a.may(access.Get, kv.Key, string(kv.Value)); err != nil {
				a.Errorf("the list of %s shows %s: %v", key, kv.Key, err)
			}
		}
		return err
	case access.Watch:
		return a.attemptWatch(ctx, key)
	}

	o := store.Op{Key: key, Value: []byte(value), Delete: op == access.Delete}
	if op == access.Lease {
		o.Lease = a.lease.ID()
	}
	_, err := a.socket.Commit(ctx, store.Txn{Ops: []store.Op{o}})
	return err
}

// attemptWatch watches a key and returns the gateway's refusal. A watch is allowed if no refusal comes within
// a moment.
func (a *attacker) attemptWatch(ctx context.Context, key string) error {
	scope := store.Exactly(key)
	if strings.HasSuffix(key, "/") {
		scope = store.Below(key)
	}
	w, err := a.socket.Watch(ctx, a.revision, scope)
	a.ok(err)
	defer w.Close()

	patience := time.Minute
	if a.may(access.Watch, key, "") == nil {
		patience = 20 * time.Millisecond
	}
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err = w.Next(bound); errors.Is(err, store.ErrDenied) {
		return err
	}
	return nil
}

func (a *attacker) may(op access.Op, key, value string) error {
	p := access.NewPlacement(a)
	switch op {
	case access.Put, access.Lease, access.Delete:
		w := access.Write{Key: key, Value: []byte(value), Delete: op == access.Delete, Leased: op == access.Lease}
		return access.MayCommit(access.Agent("1"), p, []access.Write{w})
	case access.Get:
		return access.May(access.Agent("1"), p, op, key, []byte(value), nil)
	}
	if strings.HasSuffix(key, "/") && op == access.Watch {
		return access.MayWatchPrefix(access.Agent("1"), p, key)
	}
	return access.May(access.Agent("1"), p, op, key, nil, nil)
}

// TestAttacker tries every operation with every key, and checks that the gateway allows exactly the
// operations that the table allows.
func TestAttacker(t *testing.T) {
	a := newAttacker(t)
	targets := slices.Sorted(maps.Keys(a.before))
	for key := range a.before {
		for i := range key {
			if prefix := key[:i+1]; key[i] == '/' && !slices.Contains(targets, prefix) {
				targets = append(targets, prefix)
			}
		}
	}

	allowed := 0
	for _, key := range append(targets, "") {
		isPrefix := key == "" || strings.HasSuffix(key, "/")
		for _, op := range access.Ops() {
			if isPrefix && op != access.List && op != access.Watch || !isPrefix && op == access.List || key == "" && op == access.Watch {
				continue
			}
			want := a.may(op, key, a.before[key])
			got := a.attempt(t.Context(), op, key, a.before[key])
			if errors.Is(got, store.ErrDenied) != errors.Is(want, access.ErrRefused) || got != nil && !errors.Is(got, store.ErrDenied) {
				t.Errorf("%s %q: the gateway says %v, and the table %v", op, key, got, want)
			}
			if got == nil {
				allowed++
			}
			if got == nil && (op == access.Put || op == access.Delete || op == access.Lease) {
				a.restore()
			}
		}
	}
	if allowed < 50 {
		t.Errorf("%d attempts were allowed: the agents could not work", allowed)
	}
}

// TestAttackerAfterRemoval checks that nothing can be written through the socket of a removed machine.
func TestAttackerAfterRemoval(t *testing.T) {
	a := newAttacker(t)
	for key := range a.before {
		if key == "machines/1" || strings.HasPrefix(key, "machines/1/") || key == "units/a/0" || strings.HasPrefix(key, "units/a/0/") {
			delete(a.before, key)
			a.remove(key)
		}
	}

	for key, value := range attackedKeys() {
		for _, op := range []access.Op{access.Put, access.Lease} {
			if err := a.attempt(t.Context(), op, key, value); !errors.Is(err, store.ErrDenied) {
				t.Errorf("%s %s: %v", op, key, err)
			}
		}
	}
}
