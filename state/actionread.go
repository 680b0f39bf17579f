package state

import (
	"errors"
	"slices"

	"bijou/state/charm"
)

// Action reads one action. Whatever waits for a unit that is gone counts as
// cancelled. ErrNotFound.
func (v *View) Action(id int) (Action, error) {
	a, ok, err := load[Action](v, actionKey(id))
	if err == nil && !ok {
		err = refuse(ErrNotFound, "action %d not found", id)
	}
	if err != nil {
		return Action{}, err
	}
	a.ID = id
	if a.Ended() {
		return a, nil
	}
	if _, err = v.Unit(a.Unit); errors.Is(err, ErrNotFound) {
		a.Status, a.Message, err = ActionCancelled, "its unit is gone", nil
	}
	return a, err
}

// Actions reads the actions of a unit (empty: of all), by id.
func (v *View) Actions(unit string) ([]Action, error) {
	ids, err := v.actionIDs(unit)
	if err != nil {
		return nil, err
	}
	actions := make([]Action, 0, len(ids))
	for _, id := range ids {
		a, err := v.Action(id)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

func (v *View) actionIDs(unit string) (ids []int, err error) {
	if unit != "" {
		q, _, err := load[actionQueue](v, actionQueueKey(unit))
		ids = append(q.Ended, q.Waiting...)
		slices.Sort(ids)
		return ids, err
	}
	kvs, err := v.list(actionsPrefix)
	for _, kv := range kvs {
		if id, ok := cutInt(kv.Key, actionsPrefix); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// NextAction reads what a unit is to do first; ok is false if nothing waits. What
// runs is first until it has ended.
func (v *View) NextAction(unit string) (a Action, ok bool, err error) {
	q, _, err := load[actionQueue](v, actionQueueKey(unit))
	if err != nil || len(q.Waiting) == 0 {
		return Action{}, false, err
	}
	a, err = v.Action(q.Waiting[0])
	a.Cancel = slices.Contains(q.Cancel, a.ID)
	return a, err == nil, err
}

// UnitActions reads what actions a unit's charm has: those of the charm that is
// deployed, before that of the service's. ErrNotFound.
func (v *View) UnitActions(unit string) (map[string]charm.Action, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return nil, err
	}
	url := u.Charm
	if url == "" {
		s, err := v.Service(u.Service)
		if err != nil {
			return nil, err
		}
		url = s.Charm
	}
	c, err := v.Charm(url)
	return c.Actions, err
}
