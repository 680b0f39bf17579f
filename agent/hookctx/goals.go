package hookctx

import (
	"context"
	"maps"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Goals returns the units and relations that the service has or will have.
func (c *Context) Goals(ctx context.Context) (hookapi.Goals, error) {
	return answer(ctx, c, func() (goals hookapi.Goals, err error) {
		if _, err := c.localUnit(""); err != nil { // the hook has no unit, and so no service
			return goals, err
		}
		return view(ctx, c, func(v *state.View) (hookapi.Goals, error) {
			return readGoals(v, c.opts.Facts.Service)
		})
	})
}

// readGoals returns the goals of the service's own units and, for each relation that is not a peer relation, those
// of the remote service and its units.
func readGoals(v *state.View, service string) (goals hookapi.Goals, err error) {
	goals.Relations = map[string]map[string]hookapi.Goal{}
	if goals.Units, err = readUnitGoals(v, service); err != nil {
		return goals, err
	}
	relations, err := v.ServiceRelations(service)
	if err != nil {
		return goals, err
	}

	for _, r := range relations {
		if r.IsPeer() {
			continue // the units of a peer relation are in goals.Units
		}

		// The service has an endpoint, since the relation is one of its own.
		end, _ := r.Endpoint(service)
		if goals.Relations[end.Name] == nil {
			goals.Relations[end.Name] = map[string]hookapi.Goal{}
		}

		remote := r.Other(service).Service
		if err := addRelationGoals(v, r, remote, goals.Relations[end.Name]); err != nil {
			return goals, err
		}
	}

	return goals, nil
}

// addRelationGoals adds the goal of the remote service of a relation, and the goals of its units, to goals. The
// keys of goals are the names of services and units. The service has joined once any unit, of either service, is
// a member of the relation.
func addRelationGoals(v *state.View, r state.Relation, remote string, goals map[string]hookapi.Goal) error {
	units, err := readUnitGoals(v, remote)
	if err != nil {
		return err
	}
	members, err := v.Members(r.ID)
	if err != nil {
		return err
	}

	goal := hookapi.Goal{Status: "joining", Since: r.Since}
	switch {
	case r.Life != state.Alive:
		goal.Status = string(state.Dying)
	case len(members) > 0:
		goal.Status = "joined"
	}

	goals[remote] = goal
	maps.Copy(goals, units)
	return nil
}

// readUnitGoals returns the goals of a service's units by name. It leaves out dead units.
func readUnitGoals(v *state.View, service string) (map[string]hookapi.Goal, error) {
	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}
	goals := map[string]hookapi.Goal{}

	for _, u := range units {
		if u.Life == state.Dead {
			continue
		}

		goal := hookapi.Goal{Status: u.Status.Status, Since: u.Status.Since}
		switch {
		case u.Life == state.Dying:
			goal.Status = string(state.Dying)
		case goal.Status == "" && u.Charm == "":
			goal.Status = "waiting" // the unit waits for its machine or its charm
		case goal.Status == "":
			goal.Status = statusUnknown
		}
		goals[u.Name] = goal
	}

	return goals, nil
}
