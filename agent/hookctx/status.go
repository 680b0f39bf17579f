package hookctx

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Status returns the workload status of the unit. If ofService is true, it returns the status of the unit's
// service, with the status of each unit of the service.
func (c *Context) Status(ctx context.Context, ofService bool) (hookapi.Status, error) {
	return answer(ctx, c, func() (hookapi.Status, error) {
		return view(ctx, c, func(v *state.View) (hookapi.Status, error) {
			if ofService {
				return readServiceStatus(v, c.opts.Facts.Service)
			}
			u, err := v.Unit(c.opts.Facts.Unit)
			return toStatus(u.Status), err
		})
	})
}

// readServiceStatus reads the status that the leader has set for its service, and the status of each unit.
func readServiceStatus(v *state.View, service string) (status hookapi.Status, err error) {
	stored, err := v.ServiceStatus(service)
	if err != nil {
		return status, err
	}
	units, err := v.Units(service)
	if err != nil {
		return status, err
	}

	status = toStatus(stored)
	status.Units = map[string]hookapi.Status{}
	for _, u := range units {
		status.Units[u.Name] = toStatus(u.Status)
	}
	return status, nil
}

// toStatus converts a stored status for the hook's tools. It replaces a missing word with statusUnknown.
func toStatus(w state.WorkloadStatus) hookapi.Status {
	return hookapi.Status{Status: cmp.Or(w.Status, statusUnknown), Message: w.Message, Data: w.Data}
}

// statusUnknown is the status of a unit or service for which no status was ever set. The ops library accepts
// this word, and fails for an empty status.
const statusUnknown = "unknown"

// SetStatus sets the workload status of the unit, or of its service if ofService is true. The status changes at
// once, even if the hook fails later. Only the leader can set the service's status: for other units SetStatus
// returns [hookapi.ErrNotLeader].
func (c *Context) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	return c.do(ctx, func() error {
		// Refuse early if the unit did not lead when the hook first asked. setServiceStatus checks again in the
		// commit.
		if ofService {
			if err := c.checkLeader(ctx); err != nil {
				return err
			}
		}

		w := state.WorkloadStatus{Status: s.Status, Message: s.Message, Data: s.Data, Since: time.Now().UTC()}
		err := c.opts.Update(ctx, func(tx *state.Tx) error {
			if ofService {
				return setServiceStatus(tx, c.opts.Facts, w)
			}
			return tx.SetUnitStatus(c.opts.Facts.Unit, w)
		})
		if err != nil {
			return err
		}

		if !ofService {
			// The data is left out: see LastStatus.
			c.lastStatus = &state.WorkloadStatus{Status: w.Status, Message: w.Message, Since: w.Since}
		}

		return nil
	})
}

// LastStatus returns the last workload status that the hook has set for its unit, without the status's data. It
// returns nil if the hook has not set a status.
func (c *Context) LastStatus() *state.WorkloadStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastStatus
}

// setServiceStatus sets the service's status. It returns [hookapi.ErrNotLeader] if the unit does not lead.
func setServiceStatus(tx *state.Tx, f hookapi.Facts, w state.WorkloadStatus) error {
	err := tx.CheckLeader(f.Service, f.Unit)
	if errors.Is(err, state.ErrNotLeader) {
		return hookapi.ErrNotLeader
	}
	if err != nil {
		return err
	}

	return tx.SetServiceStatus(f.Service, w)
}
