package actions

import (
	"fmt"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/text"
)

// queue lists a unit's actions by id.
type queue struct {
	Waiting []int `json:"waiting,omitempty"`
	Ended   []int `json:"ended,omitempty"`
	Cancel  []int `json:"cancel,omitempty"` // of those waiting: they run, and are to be ended
}

// Add puts an action of the unit's charm, or a command, into the unit's queue. It checks an action's
// parameters against the charm's schema. It returns state.ErrNotFound if the unit or the action does not
// exist, and state.ErrDead if the unit is going.
func Add(tx *state.Tx, a Action, now time.Time) (Action, error) {
	u, err := tx.Unit(a.Unit)
	if err != nil {
		return Action{}, err
	}
	if u.Life == state.Dead {
		return Action{}, keyspace.Refuse(state.ErrDead, "unit %q is dead", u.Name)
	}

	a.Status, a.Enqueued = Pending, now.UTC()
	if !a.IsCommand() {
		if a.Parameters, err = completeParameters(tx.View, a); err != nil {
			return Action{}, err
		}
	}
	if err := check(a); err != nil {
		return Action{}, err
	}
	if a.ID, err = tx.Keys().NextNumber(keys.ActionCounter); err != nil {
		return Action{}, err
	}

	return a, enqueue(tx, a)
}

func completeParameters(v *state.View, a Action) (map[string]any, error) {
	actions, err := Declared(v, a.Unit)
	if err != nil {
		return nil, err
	}

	schema, ok := actions[a.Name]
	if !ok {
		return nil, keyspace.Refuse(state.ErrNotFound, "the charm of unit %q has no action %q", a.Unit, a.Name)
	}
	full, err := schema.Check(a.Parameters)
	if err != nil {
		return full, fmt.Errorf("cannot run action %q: %w", a.Name, err)
	}

	return full, nil
}

func check(a Action) error {
	data, err := keyspace.Encode("action", a)
	if err != nil {
		return fmt.Errorf("cannot enqueue for unit %q: %w", a.Unit, err)
	}
	if text.LosesBytes(data) {
		return fmt.Errorf("cannot enqueue for unit %q: a text in it is not UTF-8: encode it, as with base64", a.Unit)
	}
	if len(data) > MaxText {
		return fmt.Errorf("cannot enqueue for unit %q: it has %d bytes, at most %d", a.Unit, len(data), MaxText)
	}

	return nil
}

func enqueue(tx *state.Tx, a Action) error {
	q, _, err := keyspace.Load[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	if len(q.Waiting) >= MaxWaiting {
		return keyspace.Refuse(
			state.ErrInUse,
			"unit %q already has %d waiting actions and commands, the most that one can have: see that its agent runs",
			a.Unit,
			len(q.Waiting),
		)
	}

	q.Waiting = append(q.Waiting, a.ID)
	if err := tx.Keys().Put(keys.ActionQueue(a.Unit), q); err != nil {
		return err
	}

	return tx.Keys().Put(keys.Action(a.ID), a)
}

// Next reads the first action of a unit's queue; ok is false if it is empty. An
// action that runs is first until it has ended.
func Next(v *state.View, unit string) (a Action, ok bool, err error) {
	q, _, err := keyspace.Load[queue](v.Keys(), keys.ActionQueue(unit))
	if err != nil || len(q.Waiting) == 0 {
		return Action{}, false, err
	}
	a, err = Get(v, q.Waiting[0])
	a.Cancel = slices.Contains(q.Cancel, a.ID)
	return a, err == nil, err
}

// Start records that a pending action runs. It returns state.ErrNotFound if the action was cancelled
// meanwhile.
func Start(tx *state.Tx, id int, run string, now time.Time) error {
	a, err := Get(tx.View, id)
	if err != nil {
		return err
	}
	if a.Status != Pending {
		return keyspace.Refuse(state.ErrNotFound, "action %d is %s", id, a.Status)
	}

	a.Status = Running
	a.Run = run
	a.Started = now.UTC()
	return tx.Keys().Put(keys.Action(id), a)
}

// Log adds a line to the progress of an action that runs.
func Log(tx *state.Tx, id int, line Line) error {
	a, err := Get(tx.View, id)
	if err != nil || a.Status != Running {
		return err
	}

	line.Message = state.Truncate(line.Message, maxProgressLineBytes)
	a.Progress = append(a.Progress, line)
	a.Progress = a.Progress[max(0, len(a.Progress)-maxProgressLines):]
	return tx.Keys().Put(keys.Action(id), a)
}

// End records the end of an action, for good. It changes nothing if the action has ended before. The
// unit keeps its last maxEnded; older ones are removed.
func End(tx *state.Tx, id int, status Status, end Outcome, now time.Time) error {
	a, err := Get(tx.View, id)
	if err != nil || a.Ended() {
		return state.IgnoreNotFound(err)
	}

	a.Status = status
	a.Outcome = end
	a.Completed = now.UTC()
	a.Output, err = putOutput(tx, end.Output)
	if err != nil {
		return err
	}

	q, err := keyspace.LoadOrZero[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	same := func(n int) bool { return n == id }
	q.Waiting = slices.DeleteFunc(q.Waiting, same)
	q.Cancel = slices.DeleteFunc(q.Cancel, same)
	q.Ended = append(q.Ended, id)
	for len(q.Ended) > maxEnded {
		tx.Keys().Remove(keys.Action(q.Ended[0]))
		q.Ended = q.Ended[1:]
	}

	if err := tx.Keys().Put(keys.ActionQueue(a.Unit), q); err != nil {
		return err
	}

	return tx.Keys().Put(keys.Action(id), a)
}

// Cancel cancels an action that waits. For one that runs it records the request, so that the unit's
// agent kills it. It returns state.ErrInUse if the action has ended.
func Cancel(tx *state.Tx, id int, now time.Time) error {
	a, err := Get(tx.View, id)
	switch {
	case err != nil:
		return err
	case a.Ended():
		return keyspace.Refuse(state.ErrInUse, "cannot cancel action %d: it is %s already", id, a.Status)
	case a.Status == Pending:
		return End(tx, id, Cancelled, Outcome{Message: "cancelled before it began"}, now)
	}

	q, _, err := keyspace.Load[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil || slices.Contains(q.Cancel, id) {
		return err
	}

	q.Cancel = append(q.Cancel, id)
	return tx.Keys().Put(keys.ActionQueue(a.Unit), q) // which its agent watches
}
