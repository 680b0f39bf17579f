package state

import (
	"slices"
	"time"
)

// StartAction records that a pending action runs. One that has been cancelled
// meanwhile is ErrNotFound.
func (tx *Tx) StartAction(id int, run string, now time.Time) error {
	a, err := tx.Action(id)
	if err != nil {
		return err
	}
	if a.Status != ActionPending {
		return refuse(ErrNotFound, "action %d is %s", id, a.Status)
	}
	a.Status, a.Run, a.Started = ActionRunning, run, now.UTC()
	return tx.put(actionKey(id), a)
}

// LogAction adds to what an action that runs has said of its progress.
func (tx *Tx) LogAction(id int, line ActionLine) error {
	a, err := tx.Action(id)
	if err != nil || a.Status != ActionRunning {
		return err
	}
	line.Message = truncate(line.Message, maxProgressLineBytes)
	a.Progress = append(a.Progress, line)
	a.Progress = a.Progress[max(0, len(a.Progress)-maxProgressLines):]
	return tx.put(actionKey(id), a)
}

// EndAction records how an action has ended, for good; one that has is left as it
// is. Of those that ended before, the unit's oldest is forgotten.
func (tx *Tx) EndAction(id int, status ActionStatus, end ActionEnd, now time.Time) error {
	a, err := tx.Action(id)
	if err != nil || a.Ended() {
		return ignoreNotFound(err)
	}
	a.Status, a.ActionEnd, a.Completed = status, end, now.UTC()
	if a.Output, err = tx.putOutput(end.Output); err != nil {
		return err
	}
	q, _, err := load[actionQueue](tx.View, actionQueueKey(a.Unit))
	if err != nil {
		return err
	}
	same := func(n int) bool { return n == id }
	q.Waiting, q.Cancel = slices.DeleteFunc(q.Waiting, same), slices.DeleteFunc(q.Cancel, same)
	q.Ended = append(q.Ended, id)
	for len(q.Ended) > maxEndedActions {
		tx.remove(actionKey(q.Ended[0]))
		q.Ended = q.Ended[1:]
	}
	if err := tx.put(actionQueueKey(a.Unit), q); err != nil {
		return err
	}
	return tx.put(actionKey(id), a)
}

// CancelAction ends an action that waits, and asks for the end of one that runs:
// its agent kills it. One that has ended is ErrInUse.
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
	q, _, err := load[actionQueue](tx.View, actionQueueKey(a.Unit))
	if err != nil || slices.Contains(q.Cancel, id) {
		return err
	}
	q.Cancel = append(q.Cancel, id)
	return tx.put(actionQueueKey(a.Unit), q) // which its agent watches
}
