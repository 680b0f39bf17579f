package do

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
)

// hookName is the hook's name in logs, and for the command.
const hookName = "juju-do"

// hookFacts are known before the command starts.
type hookFacts struct {
	env          state.Environment
	unit         state.Unit // the zero value: none
	charmName    string     // of the unit's charm
	version      string     // of Juju, that the command sees
	apiFacts     hookapi.Facts
	relationName string // of the hook's relation, as the unit's charm calls it
}

// gatherFacts takes a single argument that names a unit for a shell as that unit.
func (r *run) gatherFacts(ctx context.Context) error {
	id, err := r.parseRelation()
	if err != nil {
		return err
	}
	return r.State.View(ctx, func(v *state.View) error {
		if err := r.gatherUnit(v); err != nil {
			return err
		}
		if r.facts.env, err = v.Environment(); err != nil {
			return err
		}
		r.facts.apiFacts = hookapi.Facts{
			Unit: r.Unit, Operator: true, Service: r.facts.unit.Service, Charm: r.facts.charmName, Model: r.facts.env.UUID,
			Hook: hookName, Dialect: r.Dialect, Relation: id,
		}
		if id == hookapi.NoRelation {
			return nil
		}
		return r.facts.readRelation(v, id)
	})
}

func (r *run) gatherUnit(v *state.View) error {
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
	r.facts.version = charm.JujuVersion
	if r.Unit != "" {
		var err error
		if dialect, err = r.facts.readUnit(v, r.Unit); err != nil {
			return err
		}
	}
	if r.Dialect == "" {
		r.Dialect = hookapi.Dialect(dialect)
	}
	return nil
}

func (f *hookFacts) readUnit(v *state.View, unit string) (d charm.Dialect, err error) {
	if f.unit, err = v.Unit(unit); err != nil {
		return "", err
	}
	s, err := v.Service(f.unit.Service)
	if err != nil {
		return "", err
	}
	c, err := v.Charm(cmp.Or(f.unit.Charm, s.Charm)) // its agent may not have begun yet
	if err != nil {
		return "", err
	}
	f.charmName, f.version = c.Meta.Name, s.PromisedVersion()
	return s.DialectOf(c), nil
}

// readRelation makes the only unit at the other end the remote unit.
func (f *hookFacts) readRelation(v *state.View, id int) error {
	r, err := v.Relation(id)
	if err != nil {
		return err
	}
	members, err := v.Members(id)
	if err != nil {
		return err
	}
	if f.unit.Name == "" {
		for _, m := range members {
			f.apiFacts.Members = append(f.apiFacts.Members, m.Unit)
		}
		return nil
	}
	end, ok := r.Endpoint(f.unit.Service)
	at := slices.IndexFunc(members, func(m state.Member) bool { return m.Unit == f.unit.Name })
	switch {
	case !ok:
		return fmt.Errorf("unit %q has no part in %s, which is between %v", f.unit.Name, r, r.Endpoints)
	case at < 0:
		return fmt.Errorf("unit %q is not in %s: it has not entered it yet, or has left it", f.unit.Name, r)
	}
	f.relationName = end.Name
	f.apiFacts.RemoteService = r.Other(f.unit.Service).Service
	f.apiFacts.Members = visibleMembers(r, members, members[at])
	if len(f.apiFacts.Members) == 1 {
		f.apiFacts.RemoteUnit = f.apiFacts.Members[0]
	}
	return nil
}

func visibleMembers(r state.Relation, members []state.Member, own state.Member) []string {
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

func (r *run) contextOptions() hookctx.Options {
	return hookctx.Options{
		State:        r.State,
		Update:       r.State.Update,
		Facts:        r.facts.apiFacts,
		RelationName: r.facts.relationName,
		CharmURL:     r.facts.unit.Charm,
		SecretKeys:   r.SecretKeys,
		Log:          func(level, message string) { r.logs.write(r.Unit, level, message) },
	}
}
