package hookctx

import (
	"context"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// IsLeader reports whether the local unit led its service when the hook needed to know this for the first time.
// So it always gives the same answer to one hook.
func (c *Context) IsLeader(ctx context.Context) (bool, error) {
	return answer(ctx, c, func() (bool, error) { return c.readIsLeader(ctx) })
}

// readIsLeader reports whether the unit leads its service. It reads the leader once, so that a hook always
// gets the same answer. Without a local unit it returns false. The caller holds c.mu.
func (c *Context) readIsLeader(ctx context.Context) (bool, error) {
	unit := c.opts.Facts.Unit
	if unit == "" {
		return false, nil
	}
	if c.leads != nil {
		return *c.leads, nil
	}

	leader, err := view(ctx, c, func(v *state.View) (string, error) { return v.Leader(c.opts.Facts.Service) })
	if err != nil {
		return false, err
	}

	leads := leader == unit
	c.leads = &leads
	return leads, nil
}

// checkLeader returns [hookapi.ErrNotLeader] unless the unit leads its service.
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

// requireLeader returns [hookapi.ErrNotLeader] unless the unit leads its service. If it returns nil, the
// commit of the hook fails unless the unit still leads.
func (c *Context) requireLeader(ctx context.Context) error {
	if err := c.checkLeader(ctx); err != nil {
		return err
	}

	c.needsLeadership = true
	return nil
}

// requireServiceWrite returns [hookapi.ErrNotLeader] if the hook cannot write the settings that a service has
// set for the whole service in a relation. Only the service's leader and operators can write them. For the
// leader, the commit of the hook then fails unless the unit still leads. An empty service stands for a unit's
// settings, for which requireServiceWrite returns nil.
func (c *Context) requireServiceWrite(ctx context.Context, service string) error {
	f := c.opts.Facts
	isUnitNode := service == ""
	byOperator := f.Operator || f.Unit == ""
	if isUnitNode || byOperator {
		return nil
	}
	if service != f.Service {
		return hookapi.ErrNotLeader
	}

	return c.requireLeader(ctx)
}

// LeaderSettings returns the settings that the service's leader has set for its peers, with the hook's own
// writes applied.
func (c *Context) LeaderSettings(ctx context.Context) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadLeaderSettings(ctx)) })
}

// SetLeaderSettings merges changes into the leader settings, where nil removes a key. The changes take effect when
// the hook succeeds. It returns [hookapi.ErrNotLeader] unless the unit leads.
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

// loadLeaderSettings returns the leader settings, which it reads once.
func (c *Context) loadLeaderSettings(ctx context.Context) (*settingsNode, error) {
	return loadOnce(ctx, c, &c.leaderSettings, func(v *state.View) (*settingsNode, error) {
		s, err := v.LeaderSettings(c.opts.Facts.Service)
		return newSettingsNode(s), err
	})
}

// SeenLeaderSettings returns the version of the leader settings that the hook has read. If the hook has not
// read them, SeenLeaderSettings returns 0.
func (c *Context) SeenLeaderSettings() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaderSettings.seenVersion()
}

// addUnitAndLeaderState adds the changes of the leader settings and of the unit's own key-value pairs to the
// transaction. It returns [state.ErrNotLeader] if the hook has written something that only a leader can write, and
// the unit no longer leads.
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
	return state.IgnoreNotFound(err) // a unit that is gone keeps no pairs
}

// State returns the unit's own key-value pairs, with the hook's own writes applied.
func (c *Context) State(ctx context.Context) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadUnitState(ctx)) })
}

// SetState merges changes into the unit's own key-value pairs, where nil removes a key. The changes take effect
// when the hook succeeds.
func (c *Context) SetState(ctx context.Context, changes map[string]*string) error {
	return c.do(ctx, func() error {
		n, err := c.loadUnitState(ctx)
		if err != nil {
			return err
		}
		return n.apply(changes)
	})
}

// loadUnitState returns the unit's own key-value pairs, which state-get and state-set use. It reads them once.
func (c *Context) loadUnitState(ctx context.Context) (*settingsNode, error) {
	unit, err := c.localUnit("") // the hook's own unit
	if err != nil {
		return nil, err
	}

	return loadOnce(ctx, c, &c.unitState, func(v *state.View) (*settingsNode, error) {
		s, err := v.UnitState(unit)
		return newSettingsNode(s), err
	})
}
