package hookctx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Bindings are the names of the charm's endpoints, sorted.
func (c *Context) Bindings(ctx context.Context) ([]string, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	return c.bindings(ctx)
}

func (c *Context) bindings(ctx context.Context) (names []string, err error) {
	err = c.view(ctx, func(v *state.View) (err error) {
		names, err = v.Bindings(c.o.Facts.Service, c.o.CharmURL)
		return err
	})
	return names, err
}

// SetVersion says which version of its workload the unit runs, at once.
func (c *Context) SetVersion(ctx context.Context, version string) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	unit, err := c.local("")
	if err != nil {
		return err
	}
	return c.o.Update(ctx, func(tx *state.Tx) error { return tx.SetWorkloadVersion(unit, version, time.Now()) })
}

// Reboot refuses: no machine of bijou's is its to reboot.
func (c *Context) Reboot(ctx context.Context, _ bool) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	var env state.Environment
	err := c.view(ctx, func(v *state.View) (err error) {
		env, err = v.Environment()
		return err
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("cannot reboot: machines of provider %q are not rebooted by their units", env.Provider)
}

// Goals are the units and relations that the environment has or is to have.
func (c *Context) Goals(ctx context.Context) (goals hookapi.Goals, err error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return goals, err
	}
	if _, err := c.local(""); err != nil {
		return goals, err
	}
	err = c.view(ctx, func(v *state.View) (err error) {
		goals, err = readGoals(v, c.o.Facts.Service)
		return err
	})
	return goals, err
}

func readGoals(v *state.View, service string) (goals hookapi.Goals, err error) {
	goals.Relations = map[string]map[string]hookapi.Goal{}
	if goals.Units, err = unitGoals(v, service); err != nil {
		return goals, err
	}
	relations, err := v.ServiceRelations(service)
	for _, r := range relations {
		if r.IsPeer() {
			continue // its units are the service's own
		}
		end, _ := r.Endpoint(service)
		if goals.Relations[end.Name] == nil {
			goals.Relations[end.Name] = map[string]hookapi.Goal{}
		}
		if err := addRelationGoals(v, r, r.Other(service).Service, goals.Relations[end.Name]); err != nil {
			return goals, err
		}
	}
	return goals, err
}

// addRelationGoals adds one relation as its other end's service and units.
func addRelationGoals(v *state.View, r state.Relation, other string, to map[string]hookapi.Goal) error {
	units, err := unitGoals(v, other)
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
	to[other] = goal
	for name, unit := range units {
		to[name] = unit
	}
	return nil
}

// unitGoals are the units of a service that are or will be.
func unitGoals(v *state.View, service string) (map[string]hookapi.Goal, error) {
	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}
	goals := map[string]hookapi.Goal{}
	for _, u := range units {
		goal := hookapi.Goal{Status: u.Status.Status, Since: u.Status.Since}
		switch {
		case u.Life == state.Dead:
			continue
		case u.Life == state.Dying:
			goal.Status = string(state.Dying)
		case goal.Status == "" && u.Charm == "":
			goal.Status = "waiting" // for its machine, or its charm
		case goal.Status == "":
			goal.Status = statusUnknown
		}
		goals[u.Name] = goal
	}
	return goals, nil
}

// conflict refuses a range that overlaps what another unit of the machine has open.
func (c *Context) conflict(ctx context.Context, unit string, p hookapi.Port) error {
	var in state.PortInUse
	var taken bool
	err := c.view(ctx, func(v *state.View) (err error) {
		in, taken, err = v.PortConflict(unit, state.Port(p))
		return err
	})
	if errors.Is(err, state.ErrNotFound) {
		return fmt.Errorf("%q: %w", unit, hookapi.ErrUnknownUnit)
	}
	if err == nil && taken {
		err = &hookapi.PortConflict{Unit: in.Unit, Open: hookapi.Port(in.Port), Want: p}
	}
	return err
}
