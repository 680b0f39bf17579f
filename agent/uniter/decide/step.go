package decide

import (
	"fmt"
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// Step is a decision of Next: one of the types below.
type Step interface{ String() string }

// Wait waits until something changes, or until Until, if it is set.
type Wait struct{ Until time.Time }

// DeployCharm puts the charm into the unit's folder in place of what is there, and records
// it. If another one has been installed before, upgrade-charm is owed.
type DeployCharm struct{ URL string }

// Enqueue persists arrivals in the queue.
type Enqueue struct{ Arrivals []hook.Arrival }

// EnterRelation makes the unit a member of the relation.
type EnterRelation struct{ Relation hook.Relation }

// RunHook persists the hook as in flight, runs it, and records its outcome.
type RunHook struct {
	Hook state.Hook
	From Cause
}

// Cause says why a hook is run.
type Cause string

// The origins of a hook.
const (
	FromWorkflow Cause = "workflow" // it is the unit's turn
	FromQueue    Cause = "queue"    // it is taken out of the queue
	FromFailure  Cause = "failure"  // it failed, and is retried
	FromCrash    Cause = "crash"    // it was in flight when an agent died
	FromOperator Cause = "operator" // it is an action or a command
)

// FailCrashed records that what was in flight when an agent died has failed.
type FailCrashed struct{}

// InterruptHook tells the hook in flight to end.
type InterruptHook struct{ Why string }

// Resolve counts the failed hook as done: the relation's, or with state.NoRelation the
// unit's.
type Resolve struct{ Relation int }

// LeaveRelation ends the membership; the relation's last hook is done.
type LeaveRelation struct{ Relation int }

// SetDying makes a subordinate's unit dying that nothing holds to its principal any more,
// unless a new relation does meanwhile.
type SetDying struct{}

// Finish removes what is left of a unit that has stopped, or is gone.
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
func (SetDying) String() string        { return "set dying" }
func (FailCrashed) String() string     { return "fail crashed" }
func (InterruptHook) String() string   { return "interrupt hook" }
func (Finish) String() string          { return "finish" }
