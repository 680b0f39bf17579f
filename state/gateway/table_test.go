package gateway_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"bijou/state/gateway"
	"bijou/state/store"
	"bijou/state/store/remote"
	"bijou/testscripts/fakes/memstore"
)

// racing is a store that runs a function before each commit.
type racing struct {
	store.Store
	store.LeaseGranter
	before func()
}

func (r *racing) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if r.before != nil {
		r.before()
	}
	return r.Store.Commit(ctx, txn)
}

// TestTable checks the rights of machine 1's agent through its socket. The tests of state/access check the
// rights themselves.
func TestTable(t *testing.T) {
	base := memstore.New()
	w := &world{T: t, base: base, dir: t.TempDir()}
	t.Cleanup(func() { base.Close() })
	race := &racing{Store: base, LeaseGranter: base.(store.LeaseGranter)}
	g, err := gateway.New(race, gateway.Table{})
	w.ok(err)
	e, err := g.Listen(gateway.Agent("1"), filepath.Join(w.dir, "socket"))
	w.ok(err)
	t.Cleanup(e.Close)
	s, err := remote.Open(t.Context(), "bijou+unix://"+filepath.Join(w.dir, "socket"))
	w.ok(err)
	t.Cleanup(func() { s.Close() })

	from := w.put("machines/1", `{"life":"alive","status":"pending"}`, "machines/2", `{"life":"alive"}`, "machines/12", `{"life":"alive"}`,
		"units/a/0", `{"machine":"1","life":"alive"}`, "units/b/0", `{"machine":"2","life":"alive"}`,
		"machines/1/units/a/0", "", "machines/2/units/b/0", "", "services/a", `{"life":"alive"}`, "services/b", `{"life":"alive"}`,
		"units/a/0/state", `{}`, "units/b/0/state", `{}`, "secret-keys/1", "x")

	t.Run("reads", func(t *testing.T) {
		snap, err := s.Snapshot(t.Context())
		w.ok(err)
		defer snap.Close()
		for key, want := range map[string]error{"machines/1": nil, "units/a/0": nil, "units/a/0/state": nil,
			"machines/2": store.ErrDenied, "units/b/0/state": store.ErrDenied, "secret-keys/1": store.ErrDenied, "anything": store.ErrDenied} {
			if _, _, err := snap.Get(t.Context(), key); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", key, err, want)
			}
		}
		w.equal(w.keys(s, "machines/1/units/"), []string{"machines/1/units/a/0"})
	})

	t.Run("the provider's settings", func(t *testing.T) {
		const whole, shown = `{"config":{"ssh.password-file":"/secret","retry-hooks":"false"},"name":"x"}`,
			`{"config":{"retry-hooks":"false"},"name":"x"}`
		watcher := w.watch(s, from, store.Exactly("environment"))
		w.put("environment", whole)

		snap, err := s.Snapshot(t.Context())
		w.ok(err)
		defer snap.Close()
		w.ok(snap.Prefetch(t.Context(), store.Exactly("environment")))
		kv, _, err := snap.Get(t.Context(), "environment")
		w.ok(err)
		w.equal(string(kv.Value), shown)

		b, err := watcher.Next(t.Context())
		w.ok(err)
		if value := string(b.Events[0].Value); value != "" && value != shown {
			t.Errorf("the watch shows %s", value)
		}
	})

	t.Run("lists of others", func(t *testing.T) {
		for _, prefix := range []string{"", "machines/", "machines/2/units/", "secret-keys/", "gateway-leases/"} {
			snap, err := s.Snapshot(t.Context())
			w.ok(err)
			if kvs, err := snap.List(t.Context(), prefix); !errors.Is(err, store.ErrDenied) {
				t.Errorf("%q: %d keys, %v", prefix, len(kvs), err)
			}
			snap.Close()
		}
	})

	t.Run("writes", func(t *testing.T) {
		put := func(key, value string) store.Txn { return store.Txn{Ops: []store.Op{{Key: key, Value: []byte(value)}}} }
		for name, c := range map[string]struct {
			txn  store.Txn
			want error
		}{
			"its unit's notes":            {put("units/a/0/state", `{"a":"1"}`), nil},
			"its unit on another machine": {put("units/a/0", `{"machine":"2","life":"alive"}`), store.ErrDenied},
			"another's notes":             {put("units/b/0/state", `{}`), store.ErrDenied},
			"another's unit":              {put("machines/1/units/b/0", ``), store.ErrDenied},
			"on another's notes":          {store.Txn{Conds: []store.Cond{{Key: "units/b/0/state"}}}, store.ErrDenied},
			"on all that happens":         {store.Txn{Conds: []store.Cond{{Prefix: ""}}}, store.ErrDenied},
		} {
			t.Run(name, func(t *testing.T) {
				if _, err := s.Commit(t.Context(), c.txn); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		}
	})

	t.Run("a unit that moves meanwhile", func(t *testing.T) {
		race.before = func() { w.put("units/a/0", `{"machine":"2","life":"alive"}`) }
		_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "units/a/0/state", Value: []byte(`{"a":"2"}`)}}})
		race.before = nil
		w.is(err, store.ErrConflict)
		w.put("units/a/0", `{"machine":"1","life":"alive"}`)
	})

	t.Run("its last storage", func(t *testing.T) {
		w.put("storage/data/0", `{"machine":"1","unit":"a/0","life":"dying","made":true}`, "units/a/0/storage", `["data/0"]`,
			"machines/1/storage", `{"all":["data/0"]}`)
		for _, ops := range [][]store.Op{
			{{Key: "storage/data/0", Value: []byte(`{"machine":"1","life":"dying","made":true}`)}, {Key: "units/a/0/storage", Delete: true}},
			{{Key: "storage/data/0", Delete: true}, {Key: "machines/1/storage", Delete: true}},
		} {
			_, err := s.Commit(t.Context(), store.Txn{Ops: ops})
			w.ok(err)
		}
	})

	t.Run("a unit that is dead", func(t *testing.T) {
		w.put("units/a/0", `{"machine":"1","life":"dead"}`)
		commit := func(key, value string) error {
			_, err := s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: key, Value: []byte(value)}}})
			return err
		}
		for _, key := range []string{"uniters/a/0/relations/7", "uniters/a/0/op", "units/a/0/state", "services/a/leader-settings"} {
			w.is(commit(key, `{}`), store.ErrDenied)
		}
		w.ok(commit("requests/a/0/remove", `{"kind":"remove","relation":-1}`))
		w.ok(commit("logs/a/0", `{"batch":1}`))
		w.put("units/a/0", `{"machine":"1","life":"alive"}`)
	})

	t.Run("watches", func(t *testing.T) {
		own := w.watch(s, from, store.Exactly("machines/1"))
		w.put("machines/12", `{"life":"dying"}`, "machines/2", `{"life":"dying"}`)
		w.sees(own, w.put("machines/1", `{"life":"dying"}`), "machines/1")
		_, err := w.watch(s, from, store.Below("machines/")).Next(t.Context())
		w.is(err, store.ErrDenied)
	})
}
