package state

import (
	"fmt"
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/text"
)

// actionQueue lists a unit's actions by id.
type actionQueue struct {
	Waiting []int `json:"waiting,omitempty"`
	Ended   []int `json:"ended,omitempty"`
	Cancel  []int `json:"cancel,omitempty"` // of those waiting: they run, and are to be ended
}

// AddAction puts an action of the unit's charm, or a command, into the unit's queue. It checks an action's
// parameters against the charm's schema. It returns ErrNotFound if the unit or the action does not exist,
// and ErrDead if the unit is going.
func (tx *Tx) AddAction(a Action, now time.Time) (Action, error) {
	u, err := tx.Unit(a.Unit)
	if err != nil {
		return Action{}, err
	}
	if u.Life == Dead {
		return Action{}, refuse(ErrDead, "unit %q is dead", u.Name)
	}

	a.Status, a.Enqueued = ActionPending, now.UTC()
	if !a.IsCommand() {
		if a.Parameters, err = tx.actionParameters(a); err != nil {
			return Action{}, err
		}
	}
	if err := checkAction(a); err != nil {
		return Action{}, err
	}
	if a.ID, err = tx.keys.NextNumber(keys.ActionCounter); err != nil {
		return Action{}, err
	}

	return a, tx.enqueueAction(a)
}

func (v *View) actionParameters(a Action) (map[string]any, error) {
	actions, err := v.UnitActions(a.Unit)
	if err != nil {
		return nil, err
	}

	schema, ok := actions[a.Name]
	if !ok {
		return nil, refuse(ErrNotFound, "the charm of unit %q has no action %q", a.Unit, a.Name)
	}
	full, err := schema.Check(a.Parameters)
	if err != nil {
		return full, fmt.Errorf("cannot run action %q: %w", a.Name, err)
	}

	return full, nil
}

func checkAction(a Action) error {
	data, err := keyspace.Encode("action", a)
	if err != nil {
		return fmt.Errorf("cannot enqueue for unit %q: %w", a.Unit, err)
	}
	if text.LosesBytes(data) {
		return fmt.Errorf("cannot enqueue for unit %q: a text in it is not UTF-8: encode it, as with base64", a.Unit)
	}
	if len(data) > MaxActionText {
		return fmt.Errorf("cannot enqueue for unit %q: it has %d bytes, at most %d", a.Unit, len(data), MaxActionText)
	}

	return nil
}

func (tx *Tx) enqueueAction(a Action) error {
	q, _, err := keyspace.Load[actionQueue](tx.keys, keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	if len(q.Waiting) >= MaxWaitingActions {
		return refuse(
			ErrInUse,
			"unit %q has %d actions and commands waiting already, which is the most; is its agent there?",
			a.Unit,
			len(q.Waiting),
		)
	}

	q.Waiting = append(q.Waiting, a.ID)
	if err := tx.keys.Put(keys.ActionQueue(a.Unit), q); err != nil {
		return err
	}

	return tx.keys.Put(keys.Action(a.ID), a)
}

// NextAction reads the first action of a unit's queue; ok is false if it is empty. An
// action that runs is first until it has ended.
func (v *View) NextAction(unit string) (a Action, ok bool, err error) {
	q, _, err := keyspace.Load[actionQueue](v.keys, keys.ActionQueue(unit))
	if err != nil || len(q.Waiting) == 0 {
		return Action{}, false, err
	}
	a, err = v.Action(q.Waiting[0])
	a.Cancel = slices.Contains(q.Cancel, a.ID)
	return a, err == nil, err
}

// StartAction records that a pending action runs. It returns ErrNotFound if the action was cancelled
// meanwhile.
func (tx *Tx) StartAction(id int, run string, now time.Time) error {
	a, err := tx.Action(id)
	if err != nil {
		return err
	}
	if a.Status != ActionPending {
		return refuse(ErrNotFound, "action %d is %s", id, a.Status)
	}

	a.Status = ActionRunning
	a.Run = run
	a.Started = now.UTC()
	return tx.keys.Put(keys.Action(id), a)
}

// LogAction adds a line to the progress of an action that runs.
func (tx *Tx) LogAction(id int, line ActionLine) error {
	a, err := tx.Action(id)
	if err != nil || a.Status != ActionRunning {
		return err
	}

	line.Message = Truncate(line.Message, maxProgressLineBytes)
	a.Progress = append(a.Progress, line)
	a.Progress = a.Progress[max(0, len(a.Progress)-maxProgressLines):]
	return tx.keys.Put(keys.Action(id), a)
}

// EndAction records the end of an action, for good. It changes nothing if the action has ended before. The
// unit keeps its last maxEndedActions; older ones are removed.
func (tx *Tx) EndAction(id int, status ActionStatus, end ActionEnd, now time.Time) error {
	a, err := tx.Action(id)
	if err != nil || a.Ended() {
		return IgnoreNotFound(err)
	}

	a.Status = status
	a.ActionEnd = end
	a.Completed = now.UTC()
	a.Output, err = tx.putOutput(end.Output)
	if err != nil {
		return err
	}

	q, err := keyspace.LoadOrZero[actionQueue](tx.keys, keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	same := func(n int) bool { return n == id }
	q.Waiting = slices.DeleteFunc(q.Waiting, same)
	q.Cancel = slices.DeleteFunc(q.Cancel, same)
	q.Ended = append(q.Ended, id)
	for len(q.Ended) > maxEndedActions {
		tx.keys.Remove(keys.Action(q.Ended[0]))
		q.Ended = q.Ended[1:]
	}

	if err := tx.keys.Put(keys.ActionQueue(a.Unit), q); err != nil {
		return err
	}

	return tx.keys.Put(keys.Action(id), a)
}

// CancelAction cancels an action that waits. For one that runs it records the request, so that the unit's
// agent kills it. It returns ErrInUse if the action has ended.
func (tx *Tx) CancelAction(id int, now time.Time) error {
	a, err := tx.Action(id)
	switch {
	case err != nil:
		return err
	case a.Ended():
		return refuse(ErrInUse, "cannot cancel action %d: it is %s already", id, a.Status)
	case a.Status == ActionPending:
		return tx.EndAction(id, ActionCancelled, ActionEnd{Message: "cancelled before it began"}, now)
	}

	q, _, err := keyspace.Load[actionQueue](tx.keys, keys.ActionQueue(a.Unit))
	if err != nil || slices.Contains(q.Cancel, id) {
		return err
	}

	q.Cancel = append(q.Cancel, id)
	return tx.keys.Put(keys.ActionQueue(a.Unit), q) // which its agent watches
}
