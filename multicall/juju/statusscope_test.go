package juju

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// TestScopeShowsTheSame checks that a status that is read for some patterns is equal to the same selection
// from the full status.
func TestScopeShowsTheSame(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 12)
	statetest.AddService(t, st, statetest.WordPress(), 3)
	statetest.AddServiceOf(t, st, statetest.AddCharm(t, st, statetest.Meta("mysql-backup", "name: mysql-backup\nsummary: s\ndescription: d\n")), "mysql-backup", 20)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	statetest.Session(t, st, state.MachineAgent("0"), state.UnitAgent("mysql/1"), state.UnitAgent("mysql/11"), state.UnitAgent("mysql-backup/1"))
	statetest.Update(t, st, func(tx *state.Tx) error {
		var errs []error
		for _, unit := range []string{"mysql/1", "mysql/11", "mysql/2", "mysql-backup/1"} {
			errs = append(errs, tx.PutWorkflow(unit, state.Workflow{State: "started", Charm: "local:jammy/mysql-0"}))
		}
		return errors.Join(append(errs, tx.PutRelationState("mysql/1", r.ID, state.RelationState{State: state.RelationUp}))...)
	})
	read := func(patterns []string) (status.Status, error) {
		return state.Read(t.Context(), st, func(v *state.View) (status.Status, error) {
			return status.Read(v, status.Options{Now: time.Unix(0, 0), Globs: patterns})
		})
	}
	if _, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "machines/0", Delete: true}}}); err != nil {
		t.Fatal(err) // its units still exist
	}
	whole, err := read(nil)
	if err != nil {
		t.Fatal(err)
	}
	damage := whole.Damage
	whole.Damage = nil
	for _, patterns := range [][]string{
		{"mysql"}, {"mysql/1"}, {"mysql", "mysql/1"}, {"mysql/1*"}, {"mysql*"}, {"wordpress"}, {"wordpress/0", "mysql/2"}, {"*/1"}, {"mysql-backup"}, {"mysql/99"}, {"nothing"}, {"my[s]ql/11"},
		{"mysql/99", "wordpress"}, {"mysql/99*", "wordpress/*"}, {"x*", "mysql/1", "*/2", "mysql/99"}, {"mysql", "wordpress"},
	} {
		part, err := read(patterns)
		if err != nil {
			t.Fatal(err)
		}
		if len(allUnits(part)) > 0 && !slices.Equal(part.Damage, damage) { // without shown units, the damage concerns nothing that is shown
			t.Errorf("%q: damage %q, want %q", patterns, part.Damage, damage)
		}
		part.Damage = nil
		if diff := cmp.Diff(selectStatus(whole, patterns), part); diff != "" {
			t.Errorf("%q (-all +what is read):\n%s", patterns, diff)
		}
	}
	one, err := read([]string{"mysql/1"})
	if err != nil {
		t.Fatal(err)
	}
	if units := one.Services["mysql"].Units; len(units) != 1 || len(one.Services["mysql-backup"].Units) != 0 || len(one.Services["wordpress"].Units) != 0 {
		t.Errorf("for mysql/1 alone %d of its service are read", len(units))
	}
}

// readCounter counts the keys that its snapshots return.
type readCounter struct {
	store.Store
	keys int
}

type countedSnapshot struct {
	store.Snapshot
	c *readCounter
}

func (c *readCounter) Snapshot(ctx context.Context) (store.Snapshot, error) {
	s, err := c.Store.Snapshot(ctx)
	return &countedSnapshot{s, c}, err
}

func (s *countedSnapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.c.keys++
	return s.Snapshot.Get(ctx, key)
}

func (s *countedSnapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := s.Snapshot.List(ctx, prefix)
	s.c.keys += len(kvs)
	return kvs, err
}

// TestScopeReadsWhatItShows counts the keys that status reads for one service with many units. It also counts
// them for the hub to which these units are related, and whose agent keeps a record of each.
func TestScopeReadsWhatItShows(t *testing.T) {
	const n = 500
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	statetest.AddService(t, st, statetest.WordPress(), n)
	r := statetest.Relate(t, st, "wordpress", "mysql")
	for i := range n {
		unit := fmt.Sprintf("wordpress/%d", i)
		statetest.Enter(t, st, r.ID, unit, map[string]string{"k": "v"})
		statetest.Update(t, st, func(tx *state.Tx) error {
			return errors.Join(
				tx.PutWorkflow(unit, state.Workflow{State: "started"}),
				tx.PutRelationState(unit, r.ID, state.RelationState{State: state.RelationUp}),
				tx.PutMember(unit, r.ID, "mysql/0", state.MemberState{State: "joined"}),
				tx.PutMember("mysql/0", r.ID, unit, state.MemberState{State: "joined"}),
			)
		})
	}
	counter := &readCounter{}
	counted := statetest.ShareWrapped(st, func(s store.Store) store.Store {
		counter.Store = s
		return counter
	})
	// The hub's relation shows the state of all its units, so status reads the records of all of them.
	for pattern, most := range map[string]int{"wordpress/3": 30, "wordpress/3*": 5 * n, "mysql": 5 * n} {
		counter.keys = 0
		s, err := state.Read(t.Context(), counted, func(v *state.View) (status.Status, error) {
			return status.Read(v, status.Options{Now: time.Unix(0, 0), Globs: []string{pattern}})
		})
		if err != nil || len(s.Services["wordpress"].Units)+len(s.Services["mysql"].Units) == 0 {
			t.Errorf("%s: %v, %v", pattern, s.Services, err)
		}
		t.Logf("%s: %d keys", pattern, counter.keys)
		if counter.keys > most {
			t.Errorf("%s: %d keys are read, at most %d are shown", pattern, counter.keys, most)
		}
	}
}
