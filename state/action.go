package state

import (
	"fmt"
	"time"
)

// ActionStatus is how far an action is.
type ActionStatus string

// The words for it. The last three are for good.
const (
	ActionPending   ActionStatus = "pending"
	ActionRunning   ActionStatus = "running"
	ActionCompleted ActionStatus = "completed"
	ActionFailed    ActionStatus = "failed"
	ActionCancelled ActionStatus = "cancelled"
)

const (
	// MaxWaiting is how many actions and commands may wait for one unit.
	MaxWaiting = 64
	// maxEndedActions is how many of one unit are remembered after their end.
	maxEndedActions = 50
	// maxProgressLines is how many lines of an action's progress are kept, the newest.
	maxProgressLines = 100
	// maxProgressLineBytes is how much of one line is kept, in bytes.
	maxProgressLineBytes = 2 << 10
	// MaxActionText bounds an action's parameters or command, and its results, in
	// bytes of JSON.
	MaxActionText = 64 << 10
)

// Action is one thing that an operator has asked a unit to do: an action of its
// charm, or a command.
type Action struct {
	ID   int    `json:"-"`
	Unit string `json:"unit"`
	// Name is the charm's action; empty for a command.
	Name       string         `json:"name,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"` // complete, of JSON's types
	Command    []string       `json:"command,omitempty"`    // one word: a line for a shell

	Status    ActionStatus `json:"status"`
	Cancel    bool         `json:"-"` // it runs, and is to be ended
	Enqueued  time.Time    `json:"enqueued"`
	Started   time.Time    `json:"started,omitzero"`
	Run       string       `json:"run,omitempty"` // the id of its run, as the unit's folder notes it
	Completed time.Time    `json:"completed,omitzero"`

	Progress []ActionLine `json:"progress,omitempty"`
	ActionEnd
}

// ActionLine is what an action has said of its progress.
type ActionLine struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// ActionEnd is what is known of an action once it has ended.
type ActionEnd struct {
	Message string         `json:"message,omitempty"` // why it failed
	Code    *int           `json:"code,omitempty"`    // of its process; nil: that did not exit by itself
	Results map[string]any `json:"results,omitempty"`
	Output  Output         `json:"output,omitzero"`
}

// Ended says if nothing more will come of it.
func (a Action) Ended() bool {
	return a.Status == ActionCompleted || a.Status == ActionFailed || a.Status == ActionCancelled
}

// IsCommand says if it is a command, and no action of the charm.
func (a Action) IsCommand() bool { return a.Name == "" }

// actionQueue lists a unit's actions: those to be done, in their order, the one
// that runs among them, and those that have ended, the oldest first.
type actionQueue struct {
	Waiting []int `json:"waiting,omitempty"`
	Ended   []int `json:"ended,omitempty"`
	Cancel  []int `json:"cancel,omitempty"` // of those waiting: they run, and are to be ended
}

// ActionSpec is what a unit is to do: an action of its charm by name, or a
// command.
type ActionSpec struct {
	Unit       string
	Name       string
	Parameters map[string]any
	Command    []string
}

// AddAction puts something into the queue of a unit. ErrNotFound (unit, action),
// ErrDead. An action's parameters are held against the charm's schema.
func (tx *Tx) AddAction(spec ActionSpec, now time.Time) (Action, error) {
	u, err := tx.Unit(spec.Unit)
	if err != nil {
		return Action{}, err
	}
	if u.Life == Dead {
		return Action{}, refuse(ErrDead, "unit %q is dead", u.Name)
	}
	a := Action{Unit: u.Name, Name: spec.Name, Command: spec.Command, Status: ActionPending, Enqueued: now.UTC()}
	if spec.Name != "" {
		if a.Parameters, err = tx.actionParameters(u, spec); err != nil {
			return Action{}, err
		}
	}
	if err := checkAction(a); err != nil {
		return Action{}, err
	}
	if a.ID, err = tx.nextNumber(actionCounter); err != nil {
		return Action{}, err
	}
	return a, tx.enqueueAction(a)
}

// actionParameters are the parameters of an action with its defaults.
func (v *View) actionParameters(u Unit, spec ActionSpec) (map[string]any, error) {
	actions, err := v.UnitActions(u.Name)
	if err != nil {
		return nil, err
	}
	schema, ok := actions[spec.Name]
	if !ok {
		return nil, refuse(ErrNotFound, "the charm of unit %q has no action %q", u.Name, spec.Name)
	}
	full, err := schema.Check(spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("cannot run action %q: %w", spec.Name, err)
	}
	return full, nil
}

// checkAction bounds what is asked for.
func checkAction(a Action) error {
	data, err := encode("action", a)
	if err == nil && len(data) > MaxActionText {
		err = fmt.Errorf("it has %d bytes, at most %d", len(data), MaxActionText)
	}
	if err != nil {
		return fmt.Errorf("cannot enqueue for unit %q: %w", a.Unit, err)
	}
	return nil
}

// enqueueAction writes a new action and puts it at the end of its unit's queue.
func (tx *Tx) enqueueAction(a Action) error {
	q, _, err := load[actionQueue](tx.View, actionQueueKey(a.Unit))
	if err != nil {
		return err
	}
	if len(q.Waiting) >= MaxWaiting {
		return refuse(ErrInUse, "unit %q has %d actions and commands waiting already, which is the most; is its agent there?", a.Unit, len(q.Waiting))
	}
	q.Waiting = append(q.Waiting, a.ID)
	if err := tx.put(actionQueueKey(a.Unit), q); err != nil {
		return err
	}
	return tx.put(actionKey(a.ID), a)
}
