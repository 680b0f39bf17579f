package hookctx

import (
	"context"
	"maps"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// unitPorts are a unit's open ports as they were read, and the hook's changes.
type unitPorts struct {
	stored  []state.Port
	changes []PortChange
}

// SetPort opens or closes a range with the hook's success.
func (c *Context) SetPort(ctx context.Context, unit string, p hookapi.Port, open bool) error {
	return c.do(ctx, func() error {
		unit, err := c.localUnit(unit)
		if err != nil {
			return err
		}
		of, err := c.loadPorts(ctx, unit)
		if err == nil && open && !slices.Contains(of.apply(of.stored), state.Port(p)) {
			err = c.checkPortConflict(ctx, unit, p)
		}
		if err == nil {
			of.changes = append(of.changes, PortChange{unit, state.Port(p), open})
		}
		return err
	})
}

// Ports returns what the local unit has open, own changes applied.
func (c *Context) Ports(ctx context.Context) ([]hookapi.Port, error) {
	return answer(ctx, c, func() ([]hookapi.Port, error) {
		unit, err := c.localUnit("")
		if err != nil {
			return nil, err
		}
		of, err := c.loadPorts(ctx, unit)
		if err != nil {
			return nil, err
		}
		var all []hookapi.Port
		for _, p := range of.apply(of.stored) {
			all = append(all, hookapi.Port(p))
		}
		return all, nil
	})
}

func (c *Context) loadPorts(ctx context.Context, unit string) (*unitPorts, error) {
	if p, ok := c.ports[unit]; ok {
		return p, nil
	}
	stored, err := view(ctx, c, func(v *state.View) ([]state.Port, error) {
		if _, err := v.Unit(unit); err != nil {
			return nil, err
		}
		return v.Ports(unit)
	})
	if err != nil {
		return nil, rewordNotFound(err, unit)
	}
	c.ports[unit] = &unitPorts{stored: stored}
	return c.ports[unit], nil
}

func (p *unitPorts) apply(open []state.Port) []state.Port {
	open = slices.Clone(open)
	for _, change := range p.changes {
		open = slices.DeleteFunc(open, func(o state.Port) bool { return o == change.Port })
		if change.Open {
			open = append(open, change.Port)
		}
	}
	slices.SortFunc(open, state.ComparePorts)
	return open
}

func (c *Context) checkPortConflict(ctx context.Context, unit string, p hookapi.Port) error {
	var taken bool
	in, err := view(ctx, c, func(v *state.View) (in state.PortInUse, err error) {
		in, taken, err = v.PortConflict(unit, state.Port(p))
		return in, err
	})
	if err == nil && taken {
		err = &hookapi.PortConflict{Unit: in.Unit, Open: hookapi.Port(in.Port), Want: p}
	}
	return rewordNotFound(err, unit)
}

func (p *unitPorts) commit(tx *state.Tx, unit string) error {
	if len(p.changes) == 0 {
		return nil
	}
	open, err := tx.Ports(unit)
	if err == nil {
		err = tx.SetPorts(unit, p.apply(open))
	}
	return state.IgnoreNotFound(err)
}

// PortChange is a range that a hook has opened or closed.
type PortChange struct {
	Unit string
	Port state.Port
	Open bool
}

// String words the change for the log.
func (c PortChange) String() string {
	if c.Open {
		return "port opened: " + c.Port.String()
	}
	return "port closed: " + c.Port.String()
}

// PortChanges returns what the hook has opened that was closed when it first looked, and
// the other way round; by unit, the closed ones first.
func (c *Context) PortChanges() (changes []PortChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, unit := range slices.Sorted(maps.Keys(c.ports)) {
		before := c.ports[unit].stored
		after := c.ports[unit].apply(before)
		for _, p := range before {
			if !slices.Contains(after, p) {
				changes = append(changes, PortChange{unit, p, false})
			}
		}
		for _, p := range after {
			if !slices.Contains(before, p) {
				changes = append(changes, PortChange{unit, p, true})
			}
		}
	}
	return changes
}
