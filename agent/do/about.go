package do

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
)

// hookName is the hook's name in logs, and what the command is told.
const hookName = "juju-do"

// about is all that is known before the command starts.
type about struct {
	env          state.Environment
	unit         state.Unit // the zero value: none
	charm        string     // its charm's name
	version      string     // of Juju, as commands are promised
	facts        hookapi.Facts
	relationName string // of the hook's relation, as the unit's charm calls it
}

// meet finds out what the command is run as. A single argument may be a unit's
// name; the command is a shell then.
func (r *run) meet(ctx context.Context) error {
	id, err := r.relation()
	if err != nil {
		return err
	}
	return r.State.View(ctx, func(v *state.View) error {
		if err := r.asUnit(v); err != nil {
			return err
		}
		if r.about.env, err = v.Environment(); err != nil {
			return err
		}
		r.about.facts = hookapi.Facts{
			Unit: r.Unit, Operator: true, Service: r.about.unit.Service, Charm: r.about.charm, Model: r.about.env.UUID,
			Hook: hookName, Dialect: r.Dialect, Relation: id,
		}
		if id == hookapi.NoRelation {
			return nil
		}
		return r.about.relate(v, id)
	})
}

// asUnit reads the unit that the command acts as, and settles the dialect.
func (r *run) asUnit(v *state.View) error {
	if r.Unit == "" && len(r.Command) == 1 && charm.IsUnit(r.Command[0]) {
		_, err := v.Unit(r.Command[0])
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		if err == nil {
			r.Unit, r.Command = r.Command[0], nil
		}
	}
	dialect := charm.Classic
	r.about.version = hookexec.JujuVersion
	if r.Unit != "" {
		var err error
		if dialect, err = r.about.be(v, r.Unit); err != nil {
			return err
		}
	}
	if r.Dialect == "" {
		r.Dialect = hookapi.Dialect(dialect)
	}
	return nil
}

// be takes a unit's part, and says what its charm speaks.
func (a *about) be(v *state.View, unit string) (d charm.Dialect, err error) {
	if a.unit, err = v.Unit(unit); err != nil {
		return "", err
	}
	s, err := v.Service(a.unit.Service)
	if err != nil {
		return "", err
	}
	url := a.unit.Charm
	if url == "" { // its agent has not begun yet
		url = s.Charm
	}
	c, err := v.Charm(url)
	if err != nil {
		return "", err
	}
	a.charm, a.version = c.Meta.Name, cmp.Or(s.JujuVersion, a.version)
	return s.DialectOf(c), nil
}

// relate makes the command a hook of that relation. Where a single unit is at
// the other end, it is the remote unit.
func (a *about) relate(v *state.View, id int) error {
	r, err := v.Relation(id)
	if err != nil {
		return err
	}
	members, err := v.Members(id)
	if err != nil {
		return err
	}
	if a.unit.Name == "" {
		for _, m := range members {
			a.facts.Members = append(a.facts.Members, m.Unit)
		}
		return nil
	}
	end, ok := r.Endpoint(a.unit.Service)
	at := slices.IndexFunc(members, func(m state.Member) bool { return m.Unit == a.unit.Name })
	switch {
	case !ok:
		return fmt.Errorf("unit %q has no part in %s, which is between %v", a.unit.Name, r, r.Endpoints)
	case at < 0:
		return fmt.Errorf("unit %q is not in %s: it has not entered it yet, or has left it", a.unit.Name, r)
	}
	a.relationName = end.Name
	a.facts.RemoteService = r.Other(a.unit.Service).Service
	a.facts.Members = others(r, members, members[at])
	if len(a.facts.Members) == 1 {
		a.facts.RemoteUnit = a.facts.Members[0]
	}
	return nil
}

// others are the members that one of them sees.
func others(r state.Relation, members []state.Member, own state.Member) []string {
	service, _, _ := charm.ParseUnit(own.Unit) // the store has it
	var seen []string
	for _, m := range members {
		remote, _, _ := charm.ParseUnit(m.Unit)
		near := r.Scope != charm.Container || m.Principal == own.Principal
		if m.Unit != own.Unit && remote == r.Other(service).Service && near {
			seen = append(seen, m.Unit)
		}
	}
	return seen
}

// hookOptions are what the hook's view of the world is made of.
func (r *run) hookOptions() hookctx.Options {
	return hookctx.Options{
		State:        r.State,
		Update:       r.State.Update,
		Facts:        r.about.facts,
		RelationName: r.about.relationName,
		CharmURL:     r.about.unit.Charm,
		Log:          func(level, message string) { r.journal.write(r.Unit, level, message) },
	}
}
