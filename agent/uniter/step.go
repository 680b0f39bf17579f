package uniter

import (
	"fmt"
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// Step is what Next decides: one of the types below.
type Step interface{ String() string }

// Wait: nothing is to be done before something changes, or Until, if it is set.
type Wait struct{ Until time.Time }

// DeployCharm: put that charm into the unit's folder in place of what is there,
// and record it. If another one has installed before, its upgrade-charm is owed.
type DeployCharm struct{ URL string }

// Enqueue: persist what has arrived in the queue.
type Enqueue struct{ Arrivals []hook.Arrival }

// EnterRelation: become a member of the relation.
type EnterRelation struct{ Relation hook.Relation }

// RunHook: persist the hook as in flight, run it, record its outcome.
type RunHook struct {
	Hook state.Hook
	From Origin
}

// Origin says why a hook is run.
type Origin string

// The origins of a hook.
const (
	FromWorkflow Origin = "workflow" // it is the unit's turn
	FromQueue    Origin = "queue"    // it is taken out of the queue
	FromFailure  Origin = "failure"  // it failed, and is retried
	FromCrash    Origin = "crash"    // it was in flight when an agent died
	FromOperator Origin = "operator" // it is an action or a command
)

// GiveUp: the action or command that was in flight when an agent died has failed.
type GiveUp struct{}

// CutShort: end what runs, for that reason.
type CutShort struct{ Why string }

// Resolve: the failed hook (of the relation, or with state.NoRelation of the
// unit) counts as done.
type Resolve struct{ Relation int }

// LeaveRelation: end the membership; the relation's last hook is done.
type LeaveRelation struct{ Relation int }

// Retire: nothing holds the subordinate's unit to its principal any more; it is
// to leave.
type Retire struct{}

// Finish: the unit has stopped, or is gone; remove what is left of it.
type Finish struct{}

func (s Wait) String() string {
	if s.Until.IsZero() {
		return "wait"
	}
	return "wait until " + s.Until.Format(time.RFC3339)
}
func (s DeployCharm) String() string   { return "deploy " + s.URL }
func (s Enqueue) String() string       { return fmt.Sprintf("enqueue %d entries", len(s.Arrivals)) }
func (s EnterRelation) String() string { return fmt.Sprintf("enter relation %d", s.Relation.ID) }
func (s RunHook) String() string       { return fmt.Sprintf("run %s (%s)", s.Hook.Name, s.From) }
func (s Resolve) String() string       { return fmt.Sprintf("resolve %d", s.Relation) }
func (s LeaveRelation) String() string { return fmt.Sprintf("leave relation %d", s.Relation) }
func (Retire) String() string          { return "retire" }
func (GiveUp) String() string          { return "give up" }
func (CutShort) String() string        { return "cut short" }
func (Finish) String() string          { return "finish" }
