package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// TestScopeShowsTheSame holds what is read for patterns against all of the status, from
// which the same is chosen.
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
		t.Fatal(err) // its units are there still
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
		if len(allUnits(part)) > 0 && !slices.Equal(part.Damage, damage) { // else it concerns nothing that is shown
			t.Errorf("%q: damage %q, want %q", patterns, part.Damage, damage)
		}
		part.Damage = nil
		got := selection{status: part, unmatched: part.Unmatched}
		got.status.Unmatched = nil
		if diff := cmp.Diff(selectStatus(whole, patterns), got, cmp.AllowUnexported(selection{})); diff != "" {
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

// readCounter counts the keys that its snapshots have given.
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

// TestScopeReadsWhatItShows counts the keys that are read of a service with very many units, and of
// the one that they are all related to, whose agent keeps a record of each.
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
	// What is said of the hub's relation says how all units are in it: of very many, all is read.
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

// selection is the part of a whole status that patterns choose: what status.Read is to return for them.
type selection struct {
	status    status.Status
	unmatched []string // the patterns that match nothing, as they were given
}

// selectStatus keeps the services and units that a pattern matches; a service's name keeps
// all its units, a unit's its service with no other unit. With them it keeps the machines
// that these units are on, and the relations of these services: of their own ends only the
// units that were kept, of others' ends all. Without patterns it keeps everything.
func selectStatus(s status.Status, patterns []string) selection {
	if len(patterns) == 0 {
		return selection{status: s}
	}
	g := status.NewGlobs(patterns)
	kept := status.Status{
		Environment: s.Environment,
		Machines:    map[string]status.Machine{}, Services: map[string]status.Service{}, Relations: map[string]status.Relation{},
	}
	for name, service := range s.Services {
		if view, ok := selectService(name, service, g); ok {
			kept.Services[name] = view
		}
	}
	for _, service := range kept.Services {
		for _, unit := range service.Units {
			if m, ok := s.Machines[unit.Machine]; ok {
				kept.Machines[unit.Machine] = m
			}
		}
	}
	for name, relation := range s.Relations {
		if view, ok := selectRelation(relation, kept.Services); ok {
			kept.Relations[name] = view
		}
	}
	return selection{status: kept, unmatched: g.Unmatched(patterns)}
}

func selectService(name string, view status.Service, g status.Globs) (kept status.Service, ok bool) {
	whole := g.Match(name)
	units := map[string]status.Unit{}
	for unit, u := range view.Units {
		if g.Match(unit) || whole {
			units[unit] = u
		}
	}
	view.Units = units
	return view, whole || len(units) > 0
}

// selectRelation returns false if no end is at a service that was kept.
func selectRelation(view status.Relation, services map[string]status.Service) (kept status.Relation, ok bool) {
	ends := map[string]status.RelationEnd{}
	for name, end := range view.Services {
		if service, own := services[name]; own {
			end, ok = selectEnd(end, service), true
		}
		ends[name] = end
	}
	view.Services = ends
	return view, ok
}

// selectEnd derives the end's state from the units that are left.
func selectEnd(end status.RelationEnd, service status.Service) status.RelationEnd {
	units := maps.Clone(end.Units)
	maps.DeleteFunc(units, func(name string, _ status.RelationUnit) bool {
		_, ok := service.Units[name]
		return !ok
	})
	if len(units) < len(end.Units) {
		end.State = status.WorstRelation(units)
	}
	end.Units = units
	return end
}
