package uniter

import (
	"context"
	"errors"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/charm"
)

// read takes a snapshot, at one revision.
func (u *uniter) read(ctx context.Context) (s Snapshot, revision int64, err error) {
	err = u.State.View(ctx, func(v *state.View) (err error) {
		if s, err = snapshot(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	s.Now, s.LastHook, s.Running = now(), u.lastHook, u.hook != nil
	s.Cut = s.Running && u.hook.cut != ""
	return s, revision, err
}

// snapshot reads what there is of the unit. It is gone if its own record is; that
// anything else is missing is an error, since what is gone loses its folder.
func snapshot(v *state.View, name string) (s Snapshot, err error) {
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
	s.RetryHooks, s.StatusInterval = env.RetryHooks(), env.StatusInterval()
	if s.Uniter, err = v.Uniter(name); err != nil {
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
	s.Relations, err = relations(v, s.Unit)
	return s, err
}

// relations reads those of the unit's service, with the members that matter to
// it. A subordinate's unit has nothing to do with other principals' services.
func relations(v *state.View, unit state.Unit) (map[int]Relation, error) {
	stored, err := v.ServiceRelations(unit.Service)
	if err != nil {
		return nil, err
	}
	all := make(map[int]Relation, len(stored))
	for _, r := range stored {
		holds := holdsTo(r, unit)
		if unit.Principal != "" && r.Scope == charm.Container && !r.IsPeer() && !holds {
			continue
		}
		members, err := v.Members(r.ID)
		if err != nil {
			return nil, err
		}
		end, _ := r.Endpoint(unit.Service)
		all[r.ID] = Relation{
			Relation: hook.Relation{ID: r.ID, Name: end.Name, RemoteService: r.Other(unit.Service).Service, Peer: r.IsPeer()},
			Life:     r.Life,
			Members:  remote(r, unit, members),
			Holds:    holds,
		}
	}
	return all, nil
}

// holdsTo says if the relation is one between a subordinate's unit and its
// principal's service.
func holdsTo(r state.Relation, unit state.Unit) bool {
	service, _, err := charm.ParseUnit(unit.Principal)
	return err == nil && r.Scope == charm.Container && r.Other(unit.Service).Service == service
}

// remote are the members at the other end, or in a peer relation the unit's
// peers; in a container-scoped relation those that share its principal.
func remote(r state.Relation, unit state.Unit, members []state.Member) []state.Member {
	principal := unit.Name
	if unit.Principal != "" {
		principal = unit.Principal
	}
	var others []state.Member
	for _, m := range members {
		service, _, err := charm.ParseUnit(m.Unit)
		own := err == nil && service == unit.Service
		near := r.Scope != charm.Container || m.Principal == principal
		if m.Unit != unit.Name && own == r.IsPeer() && near {
			others = append(others, m)
		}
	}
	return others
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
