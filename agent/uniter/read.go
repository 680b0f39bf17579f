package uniter

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// snapshot reads what there is of the unit, all at the view's revision.
func snapshot(v *state.View, name string) (Snapshot, error) {
	own, err := v.Uniter(name)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := around(v, name, own, CharmHooks{})
	if err != nil || s.Gone {
		return s, err
	}
	return s, s.readMembers(v)
}

// around reads what there is beside the unit's own records and the members of its
// relations. It is gone if its own record is; that anything else is missing is an
// error, since what is gone loses its folder. known are the charm's hooks as of
// the last look.
func around(v *state.View, name string, own state.Uniter, known CharmHooks) (s Snapshot, err error) {
	s.Unit, err = v.Unit(name)
	if errors.Is(err, state.ErrNotFound) {
		return Snapshot{Gone: true}, nil
	}
	if err != nil {
		return s, err
	}
	service, err := v.Service(s.Unit.Service)
	if err != nil {
		return s, err
	}
	env, err := v.Environment()
	if err != nil {
		return s, err
	}
	config, err := v.Config(service.Name)
	if err != nil {
		return s, err
	}
	s.Charm, s.ConfigVersion = service.Charm, config.Version
	s.RetryHooks, s.StatusInterval, s.HookTimeout = env.RetryHooks(), env.StatusInterval(), env.HookTimeout()
	s.Uniter = own
	if s.Hooks, err = charmHooks(v, service, s.Uniter.Workflow.Charm, known); err != nil {
		return s, err
	}
	if err := s.readLeader(v); err != nil {
		return s, err
	}
	if deployed := s.Uniter.Workflow.Charm; deployed != "" && deployed != s.Charm {
		if s.Upgrade, err = v.Upgrade(service.Name); err != nil {
			return s, err
		}
	}
	if asked, ok, err := v.NextAction(name); err != nil {
		return s, err
	} else if ok {
		s.Asked = &asked
	}
	if s.Relations, err = relations(v, s.Unit); err != nil {
		return s, err
	}
	s.addVanished()
	return s, nil
}

// addVanished adds the relations that the unit is in and whose records are gone,
// as a forced removal leaves them: their last hooks are still owed.
func (s *Snapshot) addVanished() {
	for id, rs := range s.Uniter.Relations {
		if _, ok := s.Relations[id]; !ok && rs.Name != "" {
			r := hook.Relation{ID: id, Name: rs.Name, RemoteService: rs.RemoteService, Peer: rs.Peer}
			s.Relations[id] = Relation{Relation: r, Life: state.Dead}
		}
	}
}

// relations reads those of the unit's service, without their members. A
// subordinate's unit has nothing to do with other principals' services.
func relations(v *state.View, unit state.Unit) (map[int]Relation, error) {
	stored, err := v.ServiceRelations(unit.Service)
	if err != nil {
		return nil, err
	}
	all := make(map[int]Relation, len(stored))
	for _, r := range stored {
		concerns, err := v.Concerns(r, unit)
		if err != nil {
			return nil, err
		}
		if !concerns {
			continue
		}
		end, _ := r.Endpoint(unit.Service)
		one := Relation{
			Relation: hook.Relation{ID: r.ID, Name: end.Name, RemoteService: r.Other(unit.Service).Service, Peer: r.IsPeer()},
			Life:     r.Life,
			Holds:    holdsTo(r, unit),
		}
		if r.Scope == charm.Container {
			one.Principal = cmp.Or(unit.Principal, unit.Name)
		}
		all[r.ID] = one
	}
	return all, nil
}

// holdsTo says if the relation is one between a subordinate's unit and its
// principal's service.
func holdsTo(r state.Relation, unit state.Unit) bool {
	service, _, err := charm.ParseUnit(unit.Principal)
	return err == nil && r.Scope == charm.Container && r.Other(unit.Service).Service == service
}

// readMembers reads the members of all relations.
func (s *Snapshot) readMembers(v *state.View) error {
	for id, r := range s.Relations {
		members, err := v.MembersOf(id, r.RemoteService)
		if err != nil {
			return err
		}
		r.Members = slices.DeleteFunc(members, func(m state.Member) bool { return !s.concerns(r, m) })
		m, ok, err := presentIn(v, id, r.RemoteService)
		if err != nil {
			return err
		}
		if ok {
			r.Members = append(r.Members, m)
		}
		s.Relations[id] = r
	}
	return nil
}

// readMember reads one entry of a relation's members.
func (s *Snapshot) readMember(v *state.View, of membership) error {
	r, known := s.Relations[of.relation]
	if !known {
		return nil
	}
	m, in, err := presentIn(v, of.relation, of.unit)
	if err != nil {
		return err
	}
	in = in && s.concerns(r, m)
	i, was := slices.BinarySearchFunc(r.Members, of.unit, func(m state.Member, unit string) int { return charm.CompareUnits(m.Unit, unit) })
	switch {
	case in && was:
		r.Members[i] = m
	case in:
		r.Members = slices.Insert(r.Members, i, m)
	case was:
		r.Members = slices.Delete(r.Members, i, i+1)
	}
	s.Relations[of.relation] = r
	return nil
}

// presentIn reads one unit's membership, or a service's for its own settings: it is in once
// there were any.
func presentIn(v *state.View, id int, name string) (m state.Member, in bool, err error) {
	if hook.IsUnit(name) {
		return v.Member(id, name)
	}
	version, err := v.AppVersion(id, name)
	return state.Member{Unit: name, Version: version}, version > 0, err
}

// concerns is true for members at the other end, in a peer relation the unit's
// peers, and the service's own settings; in a container-scoped relation for those that
// share its principal.
func (s *Snapshot) concerns(r Relation, m state.Member) bool {
	return m.Unit != s.Unit.Name && (r.Principal == "" || m.Principal == r.Principal || !hook.IsUnit(m.Unit))
}

// Idle says if a unit has nothing to do: no hook in flight, nothing owed, and
// nothing to wait for but changes. Tests wait for it.
func Idle(ctx context.Context, st *state.State, unit string) (bool, error) {
	var s Snapshot
	err := st.View(ctx, func(v *state.View) (err error) {
		s, err = snapshot(v, unit)
		return err
	})
	if err != nil {
		return false, err
	}
	s.StatusInterval = 0
	_, waiting := Next(s).(Wait)
	return waiting, nil
}
