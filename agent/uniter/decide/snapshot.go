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

// Snapshot contains everything on which Next bases its decision, and the facts that a hook gets when it
// begins.
type Snapshot struct {
	Now time.Time

	Gone   bool // the unit's record no longer exists; most other fields are then zero
	Unit   state.Unit
	Uniter state.Uniter // the records that only the unit's loop writes

	Charm         string        // the URL of the service's charm
	Upgrade       state.Upgrade // the service's upgrade; zero unless the unit runs a different charm
	ConfigVersion int64         // the version of the service's configuration
	Resources     int64         // the version of the service's resources
	Hooks         CharmHooks    // the hooks of the unit's charm
	Leader        Leader        // zero for a charm without leadership hooks
	Relations     map[int]Relation
	Secrets       Secrets
	Storages      []state.Storage // the unit's storage

	RetryHooks     bool          // failed hooks are retried automatically
	StatusInterval time.Duration // the time between update-status hooks; 0 disables them
	HookTimeout    time.Duration // the time after which a hook is interrupted; 0 disables the timeout
	LastHook       time.Time     // when this agent's last hook ended; before that, when the agent began

	Running bool      // a hook of this agent is in flight
	Begun   time.Time // when the hook in flight began
	Ending  bool      // the hook in flight was interrupted

	Queued     []hook.Arrival // arrivals that are in Uniter, but not yet in the store
	Uncompared Members        // members in Relations that were not yet compared with their entries in Uniter

	Action *actions.Action // the next action or command of an operator, if any

	Environment state.Environment
	JujuVersion string         // the version of Juju that the service's hooks see
	Debug       *actions.Debug // the session in which an operator runs hooks by hand, if any
}

// Relation is a relation of the unit's service, as it is in the store.
type Relation struct {
	hook.Relation
	Life      state.Life
	Principal string // in container scope, the principal unit of the members; empty in global scope
	// Members are the remote members that concern the unit, sorted by name and number. The last one can be
	// the remote service, which stands for its own settings.
	Members []state.Member

	ToPrincipal bool // the unit is a subordinate, and the relation connects it to its principal
}

// IsLeaving reports whether the unit must leave the relation, since the unit or the relation is dying or
// gone.
func (s *Snapshot) IsLeaving(id int) bool {
	r, ok := s.Relations[id]
	return s.Unit.Life != state.Alive || !ok || r.Life != state.Alive
}

// isOrphaned reports whether the unit is an alive subordinate that has no alive relation to its principal.
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

// AddVanishedRelations adds to Relations, as dead, the relations that the unit has entered but whose records are
// gone, for example after a forced removal. The unit must still run the last hooks of these relations. A relation
// without a recorded name is left out, since its hooks' names contain that name.
func (s *Snapshot) AddVanishedRelations() {
	for id, rs := range s.Uniter.Relations {
		if _, exists := s.Relations[id]; !exists && rs.Name != "" {
			r := hook.Relation{ID: id, Name: rs.Name, RemoteService: rs.RemoteService, Peer: rs.Peer}
			s.Relations[id] = Relation{Relation: r, Life: state.Dead}
		}
	}
}

// enteredRelations returns the ids of the relations that the unit has entered, in ascending order.
func (s *Snapshot) enteredRelations() []int { return sortedKeys(s.Uniter.Relations) }

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// CharmHooks records which optional hooks a charm has. If the charm does not have a hook, the unit takes no
// step for that hook, and its agent does not read the records that concern the hook. A charm with a dispatch
// file has all hooks.
type CharmHooks struct {
	Charm          string // the charm's URL
	Name           string // the charm's name in its metadata
	LeaderElected  bool   // the charm has leader-elected
	LeaderSettings bool   // the charm has leader-settings-changed
	Remove         bool   // the charm has remove
	Dispatch       bool   // the charm has a dispatch file
	// Dialect is the dialect of the charm's hooks. Only the modern dialect has relation-changed for a
	// service's own settings.
	Dialect   charm.Dialect
	CreatedIn []string // the charm's names of the relations with a relation-created hook
	Made      []string // files in the charm's hooks directory, including those that hooks have created
}

// HasLeadership reports whether the charm has a hook for changes of the leadership.
func (h CharmHooks) HasLeadership() bool { return h.LeaderElected || h.LeaderSettings }

// HasCreated reports whether the charm has a relation-created hook for the relation.
func (h CharmHooks) HasCreated(relation string) bool {
	return h.Dispatch || slices.Contains(h.CreatedIn, relation)
}

// NewCharmHooks returns the hooks of charm c, whose URL is url. made are the files in the hooks directory of the
// deployed charm, which also count as hooks, since hooks can create the files of other hooks there. NewCharmHooks
// does not set the dialect.
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
		relation, isCreated := strings.CutSuffix(name, "-"+hook.Created)
		if isCreated && !slices.Contains(h.CreatedIn, relation) {
			h.CreatedIn = append(h.CreatedIn, relation)
		}
	}

	return h
}

// Step is a decision of Next: one of the types below.
type Step interface{ String() string }

// Wait waits until something changes, or until a given time. A zero time never comes.
type Wait struct{ Until time.Time }

// DeployCharm replaces the charm in the unit's directory, and records the new charm. If another charm was
// installed before, the upgrade-charm hook becomes due.
type DeployCharm struct{ URL string }

// Enqueue persists arrivals in the queue.
type Enqueue struct{ Arrivals []hook.Arrival }

// BindStorage creates a storage's directory, and binds the directory to its location in the unit.
type BindStorage struct{ Storage state.Storage }

// ReleaseStorage detaches a storage from the unit.
type ReleaseStorage struct{ ID string }

// EnterRelation makes the unit a member of the relation.
type EnterRelation struct{ Relation hook.Relation }

// RunHook persists the hook as in flight, runs it, and records its outcome.
type RunHook struct {
	Hook state.Hook
	From Cause
}

// Cause is the reason why a hook runs.
type Cause string

// The causes of a hook.
const (
	FromWorkflow Cause = "workflow" // the unit's own state makes the hook due
	FromQueue    Cause = "queue"    // the hook is the next one in the queue
	FromFailure  Cause = "failure"  // the hook has failed, and is retried
	// FromCrash means that no outcome of the hook was recorded. The hook's agent died, or the unit lost the
	// leadership that the hook's writes need.
	FromCrash    Cause = "crash"
	FromOperator Cause = "operator" // the hook is an action or a command
)

// FailCrashed records that the action, command or hook that was in flight when an agent died has failed.
type FailCrashed struct{}

// InterruptHook interrupts the hook in flight with SIGTERM.
type InterruptHook struct{ Why string }

// Resolve records that a failed hook counts as done. Relation is the hook's relation, or [state.NoRelation]
// for a hook of the unit itself.
type Resolve struct{ Relation int }

// LeaveRelation ends the unit's membership in a relation whose last hook is done.
type LeaveRelation struct{ Relation int }

// SetDying marks a subordinate unit as dying, since its relation to its principal has ended. It does nothing
// if a new relation now connects the two units.
type SetDying struct{}

// Finish removes the remains of a unit that has stopped or is gone.
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
