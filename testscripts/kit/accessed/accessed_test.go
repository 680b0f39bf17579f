package accessed

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bijou/state/access"
	"bijou/state/store"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/fakes/memstore"
)

// TestConformance runs the suite of stores over an operator's store.
func TestConformance(t *testing.T) {
	wrap := func(s store.Store) store.Store { return New(s, access.Operator(), func(access.Right, error) {}) }
	inner := func(s store.Store) store.Store { return s.(*asked).Store }
	storetest.Run(t, storetest.Opener{
		Bubble:  true,
		Fresh:   func(testing.TB) store.Store { return wrap(memstore.New()) },
		Share:   func(_ testing.TB, s store.Store) store.Store { return wrap(memstore.Share(inner(s))) },
		Compact: func(_ testing.TB, s store.Store, revision int64) { memstore.Compact(inner(s), revision) },
		Expire:  func(_ testing.TB, s store.Store, id store.LeaseID) { memstore.Expire(inner(s), id) },
		Kill:    func(_ testing.TB, s store.Store) { memstore.Abandon(inner(s)) },
	})
}

func put(key, value string) store.Op { return store.Op{Key: key, Value: []byte(value)} }

// world returns a store with wordpress/0 on machine 1 and mysql/0 on machine 2, and the refusals to
// machine 1.
func world(t *testing.T) (operator, agent store.Store, refused *[]string) {
	operator = memstore.New()
	t.Cleanup(func() { operator.Close() })
	commit(t, operator, put("units/wordpress/0", `{"machine":"1","charm":"c-1"}`), put("units/wordpress/0/ports", `[]`),
		put("units/wordpress/1", `{"machine":"2","charm":"c-1"}`), put("units/wordpress/1/ports", `[]`),
		put("units/mysql/0", `{"machine":"2"}`), put("machines/1/units/wordpress/0", `{}`))

	refused = &[]string{}
	return operator, New(operator, access.Agent("1"), func(_ access.Right, err error) {
		var r *access.Refusal
		if errors.As(err, &r) {
			*refused = append(*refused, string(r.Op)+" "+r.Key)
		}
	}), refused
}

func commit(t *testing.T, s store.Store, ops ...store.Op) int64 {
	t.Helper()
	revision, err := s.Commit(t.Context(), store.Txn{Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestReports checks that each refused request is reported, whatever its result.
func TestReports(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, s store.Store, snap store.Snapshot) error
		want []string
	}{
		{"get", func(ctx context.Context, _ store.Store, snap store.Snapshot) error {
			_, _, err := snap.Get(ctx, "units/mysql/0")
			return err
		}, []string{"get units/mysql/0"}},
		{"get of its own", func(ctx context.Context, _ store.Store, snap store.Snapshot) error {
			_, _, err := snap.Get(ctx, "units/wordpress/0/ports")
			return err
		}, nil},
		{"list", func(ctx context.Context, _ store.Store, snap store.Snapshot) error {
			_, err := snap.List(ctx, "machines/")
			return err
		}, []string{"list machines/"}},
		{"watch", func(ctx context.Context, s store.Store, _ store.Snapshot) error {
			w, err := s.Watch(ctx, 0, store.Scope{Keys: []string{"units/mysql/0"}, Prefixes: []string{"units/wordpress/0/", ""}})
			if err == nil {
				w.Close()
			}
			return err
		}, []string{"watch units/mysql/0", "watch "}},
		{"commit", func(ctx context.Context, s store.Store, _ store.Snapshot) error {
			_, err := s.Commit(ctx, store.Txn{Ops: []store.Op{put("units/wordpress/0/ports", `[{"from":1,"to":1,"protocol":"tcp"}]`), put("units/mysql/0/ports", `[{"from":1,"to":1,"protocol":"tcp"}]`)}})
			return err
		}, []string{"put units/mysql/0/ports"}},
		{"condition", func(ctx context.Context, s store.Store, _ store.Snapshot) error {
			_, err := s.Commit(ctx, store.Txn{
				Conds: []store.Cond{{Key: "units/mysql/0", Revision: 1}}, Ops: []store.Op{put("units/wordpress/0/ports", `[{"from":1,"to":1,"protocol":"tcp"}]`)},
			})
			return err
		}, []string{"get units/mysql/0"}},
		{"commit that fails", func(ctx context.Context, s store.Store, _ store.Snapshot) error {
			_, err := s.Commit(ctx, store.Txn{
				Conds: []store.Cond{{Key: "units/wordpress/0", Revision: 9}}, Ops: []store.Op{put("units/mysql/0/ports", `[{"from":1,"to":1,"protocol":"tcp"}]`)},
			})
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
			return nil
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, agent, refused := world(t)
			snap, err := agent.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			if err := c.do(t.Context(), agent, snap); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *refused, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFilters checks that lists and watches show only readable keys.
func TestFilters(t *testing.T) {
	operator, agent, refused := world(t)
	snap, err := agent.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	kvs, err := snap.List(t.Context(), "units/wordpress/")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, kv := range kvs {
		shown = append(shown, kv.Key)
	}
	if diff := cmp.Diff([]string{"units/wordpress/0", "units/wordpress/0/ports", "units/wordpress/1"}, shown); diff != "" {
		t.Error(diff)
	}

	revision, err := snap.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := agent.Watch(t.Context(), revision, store.Below("units/wordpress/0/"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	commit(t, operator, put("units/wordpress/0/else", `{}`)) // it has no row
	commit(t, operator, store.Op{Key: "units/wordpress/0/ports", Delete: true})
	b, err := w.Next(t.Context())
	if err != nil || len(b.Events) != 1 || b.Events[0].Key != "units/wordpress/0/ports" {
		t.Errorf("got %v, %v", b, err)
	}
	if len(*refused) > 0 {
		t.Errorf("refused: %q", *refused)
	}
}

// moving moves the unit between the decision and the commit.
type moving struct {
	store.Store
	move func()
}

func (m *moving) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	m.move()
	return m.Store.Commit(ctx, txn)
}

// TestRightsAreConditions checks that a commit conflicts if the unit has moved to another machine in
// between.
func TestRightsAreConditions(t *testing.T) {
	operator, _, _ := world(t)
	between := &moving{Store: operator, move: func() { commit(t, operator, put("units/wordpress/0", `{"machine":"2"}`)) }}
	agent := New(between, access.Agent("1"), func(_ access.Right, err error) {
		if err != nil {
			t.Error(err)
		}
	})

	_, err := agent.Commit(t.Context(), store.Txn{Ops: []store.Op{put("units/wordpress/0/ports", `[{"from":1,"to":1,"protocol":"tcp"}]`)}})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}
