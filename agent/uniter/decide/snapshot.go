package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
)

// Snapshot is everything that Next decides by, and that hooks are told at their begin.
type Snapshot struct {
	Now time.Time

	Gone   bool // the unit's record does not exist any more
	Unit   state.Unit
	Uniter state.Uniter // the loop's own records

	Charm         string        // the URL of the service's charm
	Upgrade       state.Upgrade // the service's, while the unit runs another charm
	ConfigVersion int64         // of the service's configuration
	Resources     int64         // the version of the service's resources
	Hooks         CharmHooks    // of the unit's charm
	Leader        Leader        // zero for a charm without hooks about leadership
	Relations     map[int]Relation
	Secrets       Secrets
	Storages      []state.Storage // that the unit has

	RetryHooks     bool          // failed hooks are retried by themselves
	StatusInterval time.Duration // between update-status hooks; 0: never
	HookTimeout    time.Duration // after which a hook is told to end; 0: never
	LastHook       time.Time     // when this agent's last hook ended, or the agent began

	Running bool      // a hook of this agent is in flight
	Begun   time.Time // when that hook began
	Ending  bool      // that hook has been told to end

	Queued     []hook.Arrival // that Uniter has, and the store has not yet
	Uncompared Members        // of whom Relations may tell what Uniter does not have

	Action *actions.Action // the next action or command of an operator; nil if there is none

	Environment state.Environment
	JujuVersion string         // that the service's hooks are promised
	Debug       *actions.Debug // an operator's session in which hooks are run by hand; nil if there is none
}

// Relation is a relation of the unit's service, as the store has it now.
type Relation struct {
	hook.Relation
	Life      state.Life
	Principal string // in container scope: the unit whose machine this one shares; else empty
	// Those that concern the unit, by number; not itself; last the other service, for its own
	// settings.
	Members []state.Member

	ToPrincipal bool // the relation holds a subordinate's unit to its principal
}

// IsLeaving reports whether the unit must leave the relation.
func (s *Snapshot) IsLeaving(id int) bool {
	r, ok := s.Relations[id]
	return s.Unit.Life != state.Alive || !ok || r.Life != state.Alive
}

// isOrphaned reports whether the unit is a subordinate that no relation binds to its principal any more.
func (s *Snapshot) isOrphaned() bool {
	if s.Unit.Principal == "" || s.Unit.Life != state.Alive {
		return false
	}

	for _, r := range s.Relations {
		if r.ToPrincipal && r.Life == state.Alive {
			return false
		}
	}

	return true
}

// AddVanished adds the relations that the unit is in but whose records are gone, as after a forced removal.
// The unit still owes their last hooks.
func (s *Snapshot) AddVanished() {
	for id, rs := range s.Uniter.Relations {
		if _, ok := s.Relations[id]; !ok && rs.Name != "" {
			r := hook.Relation{ID: id, Name: rs.Name, RemoteService: rs.RemoteService, Peer: rs.Peer}
			s.Relations[id] = Relation{Relation: r, Life: state.Dead}
		}
	}
}

func (s *Snapshot) enteredRelations() []int { return sortedKeys(s.Uniter.Relations) }

func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// CharmHooks lists those hooks of a charm that are not run, nor their causes read, for a
// charm that lacks them. A charm with a dispatch file has them all.
type CharmHooks struct {
	Charm          string // the charm's URL
	Name           string // the charm's, by its metadata
	LeaderElected  bool
	LeaderSettings bool // leader-settings-changed
	Remove         bool
	Dispatch       bool
	// Of its hooks; only the modern one has relation-changed for a service's own settings.
	Dialect   charm.Dialect
	CreatedIn []string // relations with a relation-created hook, by the charm's names for them
	Made      []string // files in the charm's folder of hooks, which hooks may have made
}

// HasLeadership reports whether the charm has a hook about its service's leadership.
func (h CharmHooks) HasLeadership() bool { return h.LeaderElected || h.LeaderSettings }

// HasCreated reports whether the charm has a relation-created hook for the relation.
func (h CharmHooks) HasCreated(relation string) bool {
	return h.Dispatch || slices.Contains(h.CreatedIn, relation)
}

// NewCharmHooks returns the hooks of a charm, those that its hooks have made among them; the
// dialect is not set.
func NewCharmHooks(url string, c state.Charm, made []string) CharmHooks {
	names := append(slices.Clone(c.Hooks), made...)
	has := func(name string) bool { return c.HasDispatch || slices.Contains(names, name) }
	h := CharmHooks{
		Charm:          url,
		Name:           c.Meta.Name,
		LeaderElected:  has(hook.LeaderElected),
		LeaderSettings: has(hook.LeaderSettingsChanged),
		Remove:         has(hook.Remove),
		Dispatch:       c.HasDispatch,
		Made:           made,
	}

	for _, name := range names {
		if relation, ok := strings.CutSuffix(name, "-"+hook.Created); ok &&
			!slices.Contains(h.CreatedIn, relation) {
			h.CreatedIn = append(h.CreatedIn, relation)
		}
	}

	return h
}

// Step is a decision of Next: one of the types below.
type Step interface{ String() string }

// Wait waits until something changes, or until Until, if it is set.
type Wait struct{ Until time.Time }

// DeployCharm puts the charm into the unit's folder in place of what is there, and records
// it. If another one has been installed before, upgrade-charm is owed.
type DeployCharm struct{ URL string }

// Enqueue persists arrivals in the queue.
type Enqueue struct{ Arrivals []hook.Arrival }

// BindStorage makes a storage's folder, and puts it where the unit is to find it.
type BindStorage struct{ Storage state.Storage }

// ReleaseStorage takes a storage away from the unit.
type ReleaseStorage struct{ ID string }

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
	// It was in flight when an agent died, or lost the leadership that it wrote by.
	FromCrash    Cause = "crash"
	FromOperator Cause = "operator" // it is an action or a command
)

// FailCrashed records that what was in flight when an agent died has failed.
type FailCrashed struct{}

// InterruptHook tells the hook in flight to end.
type InterruptHook struct{ Why string }

// Resolve counts the failed hook as done: the relation's, or with state.NoRelation the unit's.
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
func (s DeployCharm) String() string    { return "deploy " + s.URL }
func (s Enqueue) String() string        { return fmt.Sprintf("enqueue %d entries", len(s.Arrivals)) }
func (s EnterRelation) String() string  { return fmt.Sprintf("enter relation %d", s.Relation.ID) }
func (s RunHook) String() string        { return fmt.Sprintf("run %s (%s)", s.Hook.Name, s.From) }
func (s Resolve) String() string        { return fmt.Sprintf("resolve %d", s.Relation) }
func (s LeaveRelation) String() string  { return fmt.Sprintf("leave relation %d", s.Relation) }
func (s BindStorage) String() string    { return "bind storage " + s.Storage.ID }
func (s ReleaseStorage) String() string { return "release storage " + s.ID }
func (SetDying) String() string         { return "set dying" }
func (FailCrashed) String() string      { return "fail crashed" }
func (InterruptHook) String() string    { return "interrupt hook" }
func (Finish) String() string           { return "finish" }
