package hookctx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// config is the service's configuration as it was read.
type config struct {
	values  map[string]any
	version int64
}

// Config returns the options that the hook sees.
func (c *Context) Config(ctx context.Context) (map[string]any, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if c.config == nil {
		var read config
		err := c.view(ctx, func(v *state.View) (err error) {
			read, err = readConfig(v, c.o.Facts.Service, c.o.CharmURL)
			return err
		})
		if err != nil {
			return nil, err
		}
		c.config = &read
	}
	return maps.Clone(c.config.values), nil
}

func readConfig(v *state.View, service, charmURL string) (config, error) {
	set, err := v.Config(service)
	if err != nil {
		return config{}, err
	}
	values, err := v.EffectiveConfig(service, charmURL)
	return config{values, set.Version}, err
}

// SeenConfig answers the version of the configuration that the hook has read; 0
// if it has not read it.
func (c *Context) SeenConfig() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config == nil {
		return 0
	}
	return c.config.version
}

// Address returns the local unit's address; empty if it has none.
func (c *Context) Address(ctx context.Context, public bool) (address string, err error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	unit, err := c.local("")
	if err != nil {
		return "", err
	}
	err = c.view(ctx, func(v *state.View) (err error) {
		address, err = v.UnitAddress(unit, public)
		return err
	})
	return address, err
}

// ports are a unit's open ports as they were read, and what the hook changes.
type ports struct {
	read    []state.Port
	changes []portChange
}

type portChange struct {
	port state.Port
	open bool
}

// SetPort opens or closes a range with the hook's success.
func (c *Context) SetPort(ctx context.Context, unit string, p hookapi.Port, open bool) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	unit, err := c.local(unit)
	if err != nil {
		return err
	}
	of, err := c.portsOf(ctx, unit)
	if err == nil && open && !slices.Contains(of.apply(of.read), state.Port(p)) {
		err = c.conflict(ctx, unit, p)
	}
	if err == nil {
		of.changes = append(of.changes, portChange{state.Port(p), open})
	}
	return err
}

// Ports returns what the local unit has open, own changes applied.
func (c *Context) Ports(ctx context.Context) ([]hookapi.Port, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	unit, err := c.local("")
	if err != nil {
		return nil, err
	}
	of, err := c.portsOf(ctx, unit)
	if err != nil {
		return nil, err
	}
	var all []hookapi.Port
	for _, p := range of.apply(of.read) {
		all = append(all, hookapi.Port(p))
	}
	return all, nil
}

// portsOf reads a unit's ports at their first use.
func (c *Context) portsOf(ctx context.Context, unit string) (*ports, error) {
	if p, ok := c.ports[unit]; ok {
		return p, nil
	}
	p := &ports{}
	err := c.view(ctx, func(v *state.View) (err error) {
		if _, err := v.Unit(unit); err != nil {
			return err
		}
		p.read, err = v.Ports(unit)
		return err
	})
	if errors.Is(err, state.ErrNotFound) {
		err = fmt.Errorf("%q: %w", unit, hookapi.ErrUnknownUnit)
	}
	if err != nil {
		return nil, err
	}
	c.ports[unit] = p
	return p, nil
}

// apply makes the hook's changes to a list of open ports.
func (p *ports) apply(open []state.Port) []state.Port {
	open = slices.Clone(open)
	for _, change := range p.changes {
		open = slices.DeleteFunc(open, func(o state.Port) bool { return o == change.port })
		if change.open {
			open = append(open, change.port)
		}
	}
	slices.SortFunc(open, state.ComparePorts)
	return open
}

// Status returns the workload status of the unit, or of its service with its units.
func (c *Context) Status(ctx context.Context, ofService bool) (status hookapi.Status, err error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return status, err
	}
	err = c.view(ctx, func(v *state.View) (err error) {
		if ofService {
			status, err = serviceStatus(v, c.o.Facts.Service)
			return err
		}
		u, err := v.Unit(c.o.Facts.Unit)
		status = shown(u.Status)
		return err
	})
	return status, err
}

// serviceStatus is what a service's leader has said of it, and its units of
// themselves.
func serviceStatus(v *state.View, service string) (status hookapi.Status, err error) {
	w, err := v.ServiceStatus(service)
	if err != nil {
		return status, err
	}
	units, err := v.Units(service)
	status = shown(w)
	status.Units = map[string]hookapi.Status{}
	for _, u := range units {
		status.Units[u.Name] = shown(u.Status)
	}
	return status, err
}

// shown is a status as tools print it.
func shown(w state.WorkloadStatus) hookapi.Status {
	return hookapi.Status{Status: cmp.Or(w.Status, statusUnknown), Message: w.Message, Data: w.Data}
}

// statusUnknown is the status of who has never set one. The ops library knows
// this word, and fails on an empty one.
const statusUnknown = "unknown"

// SetStatus takes effect at once.
func (c *Context) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	if ofService {
		leads, err := c.leads(ctx)
		if err == nil && !leads {
			err = hookapi.ErrNotLeader
		}
		if err != nil {
			return err
		}
	}
	w := state.WorkloadStatus{Status: s.Status, Message: s.Message, Data: s.Data, Since: time.Now().UTC()}
	return c.o.Update(ctx, func(tx *state.Tx) error {
		if ofService {
			return setServiceStatus(tx, c.o.Facts, w)
		}
		return tx.SetUnitStatus(c.o.Facts.Unit, w)
	})
}

// setServiceStatus sets it as long as the unit leads.
func setServiceStatus(tx *state.Tx, f hookapi.Facts, w state.WorkloadStatus) error {
	err := tx.MustLead(f.Service, f.Unit)
	if errors.Is(err, state.ErrNotLeader) {
		return hookapi.ErrNotLeader
	}
	if err != nil {
		return err
	}
	return tx.SetServiceStatus(f.Service, w)
}
