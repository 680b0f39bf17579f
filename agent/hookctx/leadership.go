package hookctx

import (
	"context"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// IsLeader reports whether the local unit led its service when the hook first asked.
func (c *Context) IsLeader(ctx context.Context) (bool, error) {
	return answer(ctx, c, func() (bool, error) { return c.readIsLeader(ctx) })
}

// readIsLeader reports whether the unit leads its service. It reads that once, so that a hook gets one
// answer.
func (c *Context) readIsLeader(ctx context.Context) (bool, error) {
	unit := c.opts.Facts.Unit
	if c.leader != nil || unit == "" {
		return c.leader != nil && *c.leader, nil
	}
	leader, err := view(ctx, c, func(v *state.View) (string, error) { return v.Leader(c.opts.Facts.Service) })
	if err != nil {
		return false, err
	}

	leads := leader == unit
	c.leader = &leads
	return leads, nil
}

// checkLeader returns ErrNotLeader unless the unit leads its service.
func (c *Context) checkLeader(ctx context.Context) error {
	leads, err := c.readIsLeader(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return hookapi.ErrNotLeader
	}

	return nil
}

// requireLeader returns ErrNotLeader unless the unit leads its service. The hook's success then also depends
// on the unit still leading.
func (c *Context) requireLeader(ctx context.Context) error {
	err := c.checkLeader(ctx)
	if err != nil {
		return err
	}

	c.needsLeadership = true
	return nil
}

// requireServiceWrite returns an error if the unit may not write the service's own settings in a relation.
// Only the leader may write them, or an operator for any unit.
func (c *Context) requireServiceWrite(ctx context.Context, service string) error {
	f := c.opts.Facts
	switch {
	case service == "" || f.Operator || f.Unit == "":
		return nil
	case service != f.Service:
		return hookapi.ErrNotLeader
	}

	return c.requireLeader(ctx)
}

// LeaderSettings returns the settings that the service's leader has set for its peers, with the hook's own
// writes applied.
func (c *Context) LeaderSettings(ctx context.Context) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadLeaderSettings(ctx)) })
}

// SetLeaderSettings merges changes into the leader settings. They take effect when the hook succeeds.
func (c *Context) SetLeaderSettings(ctx context.Context, changes map[string]*string) error {
	return c.do(ctx, func() error {
		if err := c.requireLeader(ctx); err != nil {
			return err
		}
		n, err := c.loadLeaderSettings(ctx)
		if err != nil {
			return err
		}

		return n.apply(changes)
	})
}

func (c *Context) loadLeaderSettings(ctx context.Context) (*settingsNode, error) {
	return loadOnce(ctx, c, &c.leaderSettings, func(v *state.View) (*settingsNode, error) {
		s, err := v.LeaderSettings(c.opts.Facts.Service)
		return newSettingsNode(s), err
	})
}

// SeenLeaderSettings returns the version of the leader settings that the hook has read, or
// 0.
func (c *Context) SeenLeaderSettings() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaderSettings.seenVersion()
}

// addUnitAndLeaderState adds the unit's state and the leader settings to the transaction. The commit fails
// unless the unit holds the leadership that the hook's writes need.
func (c *Context) addUnitAndLeaderState(tx *state.Tx) error {
	f := c.opts.Facts
	if c.needsLeadership {
		if err := tx.CheckLeader(f.Service, f.Unit); err != nil {
			return err
		}
	}

	if changes := c.leaderSettings.diff(); len(changes) > 0 {
		if _, err := tx.MergeLeaderSettings(f.Service, f.Unit, changes); err != nil {
			return err
		}
	}

	changes := c.unitState.diff()
	if len(changes) == 0 {
		return nil
	}
	_, err := tx.MergeUnitState(f.Unit, changes)
	return state.IgnoreNotFound(err)
}

// State returns the unit's own key-value pairs, own writes applied.
func (c *Context) State(ctx context.Context) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadUnitState(ctx)) })
}

// SetState merges changes into them, with the hook's success.
func (c *Context) SetState(ctx context.Context, changes map[string]*string) error {
	return c.do(ctx, func() error {
		n, err := c.loadUnitState(ctx)
		if err != nil {
			return err
		}
		return n.apply(changes)
	})
}

// loadUnitState returns the unit's own notes, which state-get and state-set use. It reads them once.
func (c *Context) loadUnitState(ctx context.Context) (*settingsNode, error) {
	unit, err := c.localUnit("")
	if err != nil {
		return nil, err
	}

	return loadOnce(ctx, c, &c.unitState, func(v *state.View) (*settingsNode, error) {
		s, err := v.UnitState(unit)
		return newSettingsNode(s), err
	})
}
