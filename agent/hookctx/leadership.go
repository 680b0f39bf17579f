package hookctx

import (
	"context"
	"errors"
	"maps"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// IsLeader says whether the local unit led its service when the hook first asked.
func (c *Context) IsLeader(ctx context.Context) (bool, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return false, err
	}
	return c.leads(ctx)
}

// leads reads who leads at the first call.
func (c *Context) leads(ctx context.Context) (bool, error) {
	unit := c.o.Facts.Unit
	if c.leader != nil || unit == "" {
		return c.leader != nil && *c.leader, nil
	}
	var leader string
	err := c.view(ctx, func(v *state.View) (err error) {
		leader, err = v.Leader(c.o.Facts.Service)
		return err
	})
	if err != nil {
		return false, err
	}
	leads := leader == unit
	c.leader = &leads
	return leads, nil
}

// lead makes the hook's success conditional on its unit leading the service
// still. ErrNotLeader if it does not even now.
func (c *Context) lead(ctx context.Context) error {
	leads, err := c.leads(ctx)
	if err == nil && !leads {
		err = hookapi.ErrNotLeader
	}
	if err == nil {
		c.asLeader = true
	}
	return err
}

// mayWriteService refuses a service's own settings in a relation to all but its
// leader. An operator writes for any unit, and leads none.
func (c *Context) mayWriteService(ctx context.Context, service string) error {
	f := c.o.Facts
	switch {
	case service == "" || f.Operator || f.Unit == "":
		return nil
	case service != f.Service:
		return hookapi.ErrNotLeader
	}
	return c.lead(ctx)
}

// LeaderSettings returns what the service's leader tells its peers, own writes
// applied.
func (c *Context) LeaderSettings(ctx context.Context) (map[string]string, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	n, err := c.leaderNode(ctx)
	if err != nil {
		return nil, err
	}
	return maps.Clone(n.now), nil
}

// SetLeaderSettings merges changes into it, with the hook's success.
func (c *Context) SetLeaderSettings(ctx context.Context, changes map[string]*string) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	if err := c.lead(ctx); err != nil {
		return err
	}
	n, err := c.leaderNode(ctx)
	if err != nil {
		return err
	}
	return n.apply(changes)
}

// leaderNode reads the leader settings at their first use.
func (c *Context) leaderNode(ctx context.Context) (*node, error) {
	if c.leaderSettings != nil {
		return c.leaderSettings, nil
	}
	var s state.Settings
	err := c.view(ctx, func(v *state.View) (err error) {
		s, err = v.LeaderSettings(c.o.Facts.Service)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.leaderSettings = newNode(s)
	return c.leaderSettings, nil
}

// SeenLeaderSettings answers the version of the leader settings that the hook
// has read; 0 if it has not read them.
func (c *Context) SeenLeaderSettings() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaderSettings == nil {
		return 0
	}
	return c.leaderSettings.version
}

// State returns the unit's own notes, own writes applied.
func (c *Context) State(ctx context.Context) (map[string]string, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	n, err := c.notesNode(ctx)
	if err != nil {
		return nil, err
	}
	return maps.Clone(n.now), nil
}

// SetState merges changes into them, with the hook's success.
func (c *Context) SetState(ctx context.Context, changes map[string]*string) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	n, err := c.notesNode(ctx)
	if err != nil {
		return err
	}
	return n.apply(changes)
}

// notesNode reads the unit's notes at their first use.
func (c *Context) notesNode(ctx context.Context) (*node, error) {
	if c.notes != nil {
		return c.notes, nil
	}
	unit, err := c.local("")
	if err != nil {
		return nil, err
	}
	var s state.Settings
	err = c.view(ctx, func(v *state.View) (err error) {
		s, err = v.UnitState(unit)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.notes = newNode(s)
	return c.notes, nil
}

// commitOwn writes the leader settings and the unit's notes, and holds the commit
// to the leadership that the hook's writes need.
func (c *Context) commitOwn(tx *state.Tx) error {
	f := c.o.Facts
	if c.asLeader {
		if err := tx.MustLead(f.Service, f.Unit); err != nil {
			return err
		}
	}
	if changes := c.leaderSettings.differences(); len(changes) > 0 {
		if _, err := tx.MergeLeaderSettings(f.Service, f.Unit, changes); err != nil {
			return err
		}
	}
	changes := c.notes.differences()
	if len(changes) == 0 {
		return nil
	}
	_, err := tx.MergeUnitState(f.Unit, changes)
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}
