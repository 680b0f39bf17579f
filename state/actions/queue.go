package actions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/text"
)

// queue lists the ids of a unit's actions. The unit's agent writes this record, so the record can list
// actions that do not exist or that belong to another unit.
type queue struct {
	Waiting []int `json:"waiting,omitempty"` // the actions that have not ended; only the first can be running
	Ended   []int `json:"ended,omitempty"`
	Cancel  []int `json:"cancel,omitempty"` // running actions, also in Waiting, that the agent must terminate
}

// Add puts an action of the unit's charm, or a command, into the unit's queue, and returns the action as it
// is stored. It checks an action's parameters against the charm's schema. It returns [state.ErrNotFound] if
// the unit or the action does not exist, [state.ErrDead] if the unit is dead, and [state.ErrInUse] if the
// queue is full.
func Add(tx *state.Tx, a Action, now time.Time) (Action, error) {
	u, err := tx.Unit(a.Unit)
	if err != nil {
		return Action{}, err
	}
	if u.Life == state.Dead {
		return Action{}, keyspace.Refuse(state.ErrDead, "unit %q is dead", u.Name)
	}

	a.Status = Pending
	a.Enqueued = now.UTC()
	if !a.IsCommand() {
		if a.Parameters, err = completeParameters(tx.View, a); err != nil {
			return Action{}, err
		}
	}
	if err := checkRequest(a); err != nil {
		return Action{}, err
	}

	if a.ID, err = tx.Keys().NextNumber(keys.ActionCounter); err != nil {
		return Action{}, err
	}
	return a, enqueue(tx, a)
}

// completeParameters checks the action's parameters, and returns them with the defaults of the charm's
// schema. It returns [state.ErrNotFound] if the charm has no such action.
func completeParameters(v *state.View, a Action) (map[string]any, error) {
	actions, err := Declared(v, a.Unit)
	if err != nil {
		return nil, err
	}

	schema, ok := actions[a.Name]
	if !ok {
		return nil, keyspace.Refuse(state.ErrNotFound, "the charm of unit %q has no action %q", a.Unit, a.Name)
	}
	completed, err := schema.Check(a.Parameters)
	if err != nil {
		return nil, fmt.Errorf("cannot run action %q: %w", a.Name, err)
	}

	return completed, nil
}

// checkRequest returns an error if the action is too large, or has text that is not UTF-8.
func checkRequest(a Action) error {
	data, err := keyspace.Encode("action", a)
	if err != nil {
		return fmt.Errorf("cannot enqueue for unit %q: %w", a.Unit, err)
	}
	if text.LosesBytes(data) {
		return fmt.Errorf("cannot enqueue for unit %q: a text in the request is not UTF-8; encode such text, for example with base64", a.Unit)
	}
	if len(data) > MaxText {
		return fmt.Errorf("cannot enqueue for unit %q: the request has %d bytes; the limit is %d", a.Unit, len(data), MaxText)
	}

	return nil
}

// enqueue records the action, and adds it to its unit's queue. It returns [state.ErrInUse] if the queue is
// full.
func enqueue(tx *state.Tx, a Action) error {
	q, _, err := keyspace.Load[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	if len(q.Waiting) >= MaxWaiting {
		return keyspace.Refuse(
			state.ErrInUse,
			"unit %q already has %d waiting actions and commands, which is the limit: check that its agent runs",
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

// Next reads the first action of a unit's queue. It skips actions that do not exist or that belong to another
// unit. ok is false if no action is left. A running action stays first until it ends.
func Next(v *state.View, unit string) (a Action, ok bool, err error) {
	q, _, err := keyspace.Load[queue](v.Keys(), keys.ActionQueue(unit))
	if err != nil {
		return Action{}, false, err
	}

	for _, id := range q.Waiting {
		a, ok, err := getOf(v, unit, id)
		if err != nil {
			return Action{}, false, err
		}
		if !ok {
			continue
		}

		a.Cancel = slices.Contains(q.Cancel, id)
		err = v.Keys().Keep(keys.Action(id)) // so that Start needs no round trip to read the action
		return a, true, err
	}

	return Action{}, false, nil
}

// NextAfter returns the action that Next would read after the writes w of the unit's agent. before is the
// action that Next has read before the writes, or nil. known is false if the writes do not determine the
// action. The caller must then call Next.
func NextAfter(w state.Writes, unit string, before *Action) (next *Action, known bool) {
	// If the queue has changed, the action is known only if the queue is empty now.
	if c, changed := w.Change(keys.ActionQueue(unit)); changed {
		q, err := keyspace.Decode[queue](c.KeyValue)
		isEmpty := err == nil && !c.Deleted && len(q.Waiting) == 0
		return nil, isEmpty
	}
	if before == nil {
		return nil, true
	}

	c, changed := w.Change(keys.Action(before.ID))
	if !changed {
		return before, true
	}
	after, err := keyspace.Decode[Action](c.KeyValue)
	after.ID = before.ID
	after.Cancel = before.Cancel // comes from the queue, which has not changed
	isWritten := err == nil && !c.Deleted
	return &after, isWritten
}

// WrittenBy reports whether NextAfter handles a write of this key: the key of the unit's queue, or of an
// action.
func WrittenBy(unit, key string) bool {
	return key == keys.ActionQueue(unit) || strings.HasPrefix(key, keys.Actions)
}

// PrefetchEnd reads, in one round trip, the records that End reads.
func PrefetchEnd(tx *state.Tx, unit string, id int) error {
	return tx.Keys().Prefetch(keyspace.Exactly(keys.Action(id), keys.ActionQueue(unit)))
}

// getOf reads an action that a unit's queue lists; ok is false if the action is gone, or belongs to a
// different unit.
func getOf(v *state.View, unit string, id int) (a Action, ok bool, err error) {
	a, err = Get(v, id)
	if err != nil {
		return Action{}, false, state.IgnoreNotFound(err)
	}
	return a, a.Unit == unit, nil
}

// Start records that a pending action is running. It returns [state.ErrNotFound] if the action is no longer
// pending, for instance because it was cancelled.
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

// Log adds a line to the progress of a running action, truncated to maxProgressLineBytes. It drops the oldest lines
// beyond maxProgressLines and maxProgressBytes. It does nothing if the action is not running, and returns
// [state.ErrNotFound] if there is no such action.
func Log(tx *state.Tx, id int, line Line) error {
	a, err := Get(tx.View, id)
	if err != nil {
		return err
	}
	if a.Status != Running {
		return nil
	}

	line.Message = state.Truncate(line.Message, maxProgressLineBytes)
	a.Progress = append(a.Progress, line)
	surplus := max(0, len(a.Progress)-maxProgressLines)
	a.Progress = a.Progress[surplus:]

	for {
		data, err := keyspace.Encode("progress", a.Progress)
		if err != nil {
			return err
		}
		if len(data) <= maxProgressBytes {
			return tx.Keys().Put(keys.Action(id), a)
		}
		a.Progress = a.Progress[1:]
	}
}

// End records the end of an action. It also removes the unit's oldest ended actions beyond maxEnded. It does
// nothing if the action has already ended or does not exist, or if its unit is gone.
func End(tx *state.Tx, id int, status Status, end Outcome, now time.Time) error {
	a, err := Get(tx.View, id)
	if err != nil {
		return state.IgnoreNotFound(err)
	}
	if a.Ended() {
		return nil
	}

	a.Status = status
	a.Outcome = end
	a.Completed = now.UTC()
	// The record contains only a small output.
	a.Output, err = putOutput(tx, end.Output)
	if err != nil {
		return err
	}

	q, err := keyspace.LoadOrZero[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}

	isThis := func(other int) bool { return other == id }
	q.Waiting = slices.DeleteFunc(q.Waiting, isThis)
	q.Cancel = slices.DeleteFunc(q.Cancel, isThis)
	q.Ended = append(q.Ended, id)
	if err := forgetOldest(tx, a.Unit, &q); err != nil {
		return err
	}

	if err := tx.Keys().Put(keys.ActionQueue(a.Unit), q); err != nil {
		return err
	}
	return tx.Keys().Put(keys.Action(id), a)
}

// forgetOldest removes the unit's oldest ended actions beyond maxEnded from q, which the caller must write, and
// removes their records. If there are many, it removes only as many as fit in one transaction. It keeps records
// that do not belong to an ended action of the unit, and records that are damaged.
func forgetOldest(tx *state.Tx, unit string, q *queue) error {
	surplus := max(len(q.Ended)-maxEnded, 0)
	n := min(surplus, keyspace.MaxRemovedKeys)
	for _, id := range q.Ended[:n] {
		old, exists, err := keyspace.Load[Action](tx.Keys(), keys.Action(id))
		if err != nil && !tx.Skips(err) {
			return err
		}

		isOfUnit := err == nil && exists && old.Unit == unit
		if isOfUnit && old.Ended() {
			tx.Keys().Remove(keys.Action(id))
		}
	}

	q.Ended = q.Ended[n:]
	return nil
}

// Cancel cancels a waiting action. If the action is running, Cancel makes the unit's agent terminate the
// action. It returns [state.ErrInUse] if the action has ended, and [state.ErrNotFound] if it does not exist.
func Cancel(tx *state.Tx, id int, now time.Time) error {
	a, err := Get(tx.View, id)
	if err != nil {
		return err
	}
	if a.Ended() {
		return keyspace.Refuse(state.ErrInUse, "cannot cancel action %d: it is already %s", id, a.Status)
	}
	if a.Status == Pending {
		return End(tx, id, Cancelled, Outcome{Message: "cancelled before it started"}, now)
	}

	// The unit's agent watches the queue, and terminates the running action.
	q, _, err := keyspace.Load[queue](tx.Keys(), keys.ActionQueue(a.Unit))
	if err != nil {
		return err
	}
	if slices.Contains(q.Cancel, id) {
		return nil // it was cancelled before
	}
	q.Cancel = append(q.Cancel, id)
	return tx.Keys().Put(keys.ActionQueue(a.Unit), q)
}
