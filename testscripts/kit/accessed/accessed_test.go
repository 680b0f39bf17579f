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

// world returns a store with wordpress/0 on machine 1 and mysql/0 on machine 2, and the list of the refusals
// to machine 1.
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

// TestLastLines checks that a unit's last lines, which come after its removal, are excepted although the agent's request
// ends before the exception is decided.
func TestLastLines(t *testing.T) {
	operator, _, _ := world(t)
	commit(t, operator, put("log/wordpress/0/0000000001", `{}`), store.Op{Key: "units/wordpress/0", Delete: true})

	var refused []error
	agent := New(endingStore{operator}, access.Agent("1"), func(_ access.Right, err error) {
		if err != nil {
			refused = append(refused, err)
		}
	})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	snap, err := agent.Snapshot(context.WithValue(ctx, endKey{}, end))
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()

	if _, _, err := snap.Get(ctx, "log/wordpress/0/0000000001"); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil {
		t.Error("the request did not end")
	}
	if len(refused) > 0 {
		t.Errorf("reported %v, want nothing", refused)
	}
}

// TestLastRecords checks that an agent's writes about a unit are excepted if the unit was removed by force.
func TestLastRecords(t *testing.T) {
	for what, record := range map[string][]byte{
		"dead": []byte(`{"machine":"1","life":"dead"}`),
		"gone": nil,
	} {
		t.Run(what, func(t *testing.T) {
			operator, agent, refused := world(t)
			commit(t, operator, store.Op{Key: "units/wordpress/0", Value: record, Delete: record == nil})
			commit(t, agent, put("uniters/wordpress/0/workflow", `{"charm":"local:trusty/wordpress-3","state":"started"}`))
			commit(t, agent, store.Op{Key: "uniters/wordpress/0/op", Delete: true})
			commit(t, agent, put("history/wordpress/0/0", `{"hook":"stop"}`))
			commit(t, agent, put("requests/wordpress/0/remove", `{}`))
			if len(*refused) > 0 {
				t.Errorf("reported %v, want nothing", *refused)
			}
		})
	}
}

type endKey struct{}

// endingStore ends a snapshot's context once it has read the unit, and serves no request of an ended context.
type endingStore struct{ store.Store }

func (s endingStore) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	end, _ := ctx.Value(endKey{}).(context.CancelFunc)
	return &endingSnapshot{Snapshot: snap, end: end}, err
}

type endingSnapshot struct {
	store.Snapshot
	end context.CancelFunc
}

func (s *endingSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if err := ctx.Err(); err != nil {
		return store.KV{}, false, err
	}
	if key == "units/wordpress/0" {
		defer s.end()
	}
	return s.Snapshot.Get(ctx, key)
}

// TestReports checks that each refused request is reported, whether it succeeds or fails.
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
		{"watch", func(ctx context.Context, s store.Store, snap store.Snapshot) error {
			revision, err := snap.Revision(ctx)
			if err != nil {
				return err
			}
			w, err := s.Watch(ctx, revision, store.Scope{Keys: []string{"units/mysql/0"}, Prefixes: []string{"units/wordpress/0/", ""}})
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

// TestWatchOfRemovedUnit checks that a refused watch counts only if the agent could know about the refusal:
// the first watch from an older revision does not count, and the next one does.
func TestWatchOfRemovedUnit(t *testing.T) {
	operator, agent, refused := world(t)
	before := revisionOf(t, operator)
	commit(t, operator, put("units/mysql/7", `{}`))
	ask := func(after int64) int {
		w, err := agent.Watch(t.Context(), after, store.Below("units/mysql/0/"))
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		return len(*refused)
	}

	if n := ask(before); n != 0 {
		t.Errorf("the first watch after an older revision was reported: %q", *refused)
	}
	if n := ask(revisionOf(t, operator)); n != 1 {
		t.Errorf("%d watches were reported although the agent has read since, want 1", n)
	}
}

func revisionOf(t *testing.T, s store.Store) int64 {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()

	revision, err := snap.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return revision
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

// TestRightsAreConditions checks that a commit conflicts if the unit moves to another machine between the
// decision and the commit.
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
