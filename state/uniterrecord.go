package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/state/keys"
)

// NoRelation is Hook.Relation of a hook that is none of a relation.
const NoRelation = -1

// Hook is one hook to be run.
type Hook struct {
	Kind          string `json:"kind"`     // "install", "relation-changed"
	Name          string `json:"name"`     // of its file: "db-relation-changed"
	Relation      int    `json:"relation"` // its id, or NoRelation
	RelationName  string `json:"relation-name,omitempty"`
	RemoteUnit    string `json:"remote-unit,omitempty"` // empty in broken
	RemoteService string `json:"remote-service,omitempty"`
	Action        int    `json:"action,omitempty"` // its id, if it is what an operator has asked for

	Secret         string `json:"secret,omitempty"`          // the id of the one that it is about
	SecretRevision int    `json:"secret-revision,omitempty"` // the one that it is about, or the newest
	Storage        string `json:"storage,omitempty"`         // the id of the one that it is about
}

// The kinds of a Hook that stands for an operator's action or command.
const (
	KindAction  = "action"
	KindCommand = "command"
)

// String names the hook, action or command as logs do.
func (h Hook) String() string {
	switch h.Kind {
	case KindAction:
		return fmt.Sprintf("action %d (%s)", h.Action, h.Name)
	case KindCommand:
		return fmt.Sprintf("command %d", h.Action)
	}

	return fmt.Sprintf("hook %q", h.Name)
}

// Op is the hook that a unit runs, or was killed in. Its key is there exactly while one
// is in flight.
type Op struct {
	ID       string    `json:"id"` // of this run
	Hook     Hook      `json:"hook"`
	ClientID string    `json:"client-id,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Holder   string    `json:"held-by,omitempty"` // who runs it by hand; empty: nobody
	Expect   string    `json:"expect,omitempty"`  // the workflow's state on success
	Version  int64     `json:"version,omitempty"` // of the settings or the config that it will have seen
}

// Identity tells one run of a hook from the next.
func (op Op) Identity() any { return op.ID }

// Failure describes the error state of a unit or a relation.
type Failure struct {
	Hook     Hook      `json:"hook"`
	Message  string    `json:"message"`
	Stderr   string    `json:"stderr,omitempty"` // the last line that the hook has written there
	Logged   string    `json:"logged,omitempty"` // the last line that it has logged as an error, if Stderr is empty
	Charm    string    `json:"charm,omitempty"`  // the URL of the charm that the unit's hook was of; empty for a relation's
	Since    time.Time `json:"since"`            // of the first attempt
	Attempts int       `json:"attempts"`
	RetryAt  time.Time `json:"retry-at,omitzero"` // zero: not by itself

	// Backoff counts the failures by which RetryAt is set: those since an operator last had
	// the hook retried, without those for which its agent's death is to blame.
	Backoff int `json:"backoff,omitempty"`

	// Interrupted: an operator has ended it, so that it is not retried by itself.
	Interrupted bool `json:"interrupted,omitempty"`

	// ClientID is that of the last attempt, by which processes that it has left running are found; empty
	// where an older binary has recorded it.
	ClientID string `json:"client-id,omitempty"`
}

// Identity tells one failure from the next.
func (f Failure) Identity() any { return f.Since.UnixNano() }

// LogCommand is empty where an operator knows why.
func (f Failure) LogCommand(unit string) string {
	if f.Interrupted {
		return ""
	}
	return "juju debug-log --unit " + unit
}

// Workflow is a unit's progress through its life.
type Workflow struct {
	State           string   `json:"state,omitempty"`          // "", "installed", "started", "stopped", "removed", "install-error" ...
	Charm           string   `json:"charm,omitempty"`          // the URL that is unpacked
	Deploying       string   `json:"deploying,omitempty"`      // the URL of the one that is being put in its place, which may be there already
	ConfigVersion   int64    `json:"config-version,omitempty"` // that config-changed has seen
	Failure         *Failure `json:"failure,omitempty"`        // there exactly in an error state
	NextPlace       int64    `json:"next-place,omitempty"`     // in the queue
	ConfigOwed      bool     `json:"restarted,omitempty"`      // a config-changed is owed, for instance after a restart
	ConfigOwedFirst bool     `json:"upgraded,omitempty"`       // it is owed for a new charm, before any leader hook
	ToldElected     bool     `json:"elected,omitempty"`        // it leads its service, as far as its hooks know
	LeaderVersion   int64    `json:"leader-version,omitempty"` // of the leader settings that leader-settings-changed has seen
	UpgradeOwed     bool     `json:"upgrade-owed,omitempty"`   // Charm's upgrade-charm is, before any other hook of it

	ResourcesVersion int64 `json:"resources-version,omitempty"` // of the service's that install or upgrade-charm has seen

	// Uninstalled: install is still owed, although there is a State: that of a hook before it that has failed.
	Uninstalled bool `json:"uninstalled,omitempty"`
}

// The states of a unit's relation.
const (
	RelationStart = "start" // not yet entered
	RelationUp    = "up"
	RelationEnded = "departed" // its last hook is done
	RelationError = "error"
)

// RelationState is a unit's progress in one relation.
type RelationState struct {
	State   string   `json:"state"`
	Failure *Failure `json:"failure,omitempty"` // there exactly in state error

	// CreatedOwed: the charm's relation-created is, before any other hook of the relation.
	CreatedOwed bool `json:"created-owed,omitempty"`

	// What the unit's last hooks in the relation need, should its record go first.
	Name          string `json:"name,omitempty"` // in the unit's charm
	RemoteService string `json:"remote-service,omitempty"`
	Peer          bool   `json:"peer,omitempty"`
}

// MemberState has what a unit knows of, and owes to, one member of a relation; or what it
// knows of the other service's own settings.
type MemberState struct {
	State   string `json:"state,omitempty"`
	Pending string `json:"pending,omitempty"` // the hook that is queued
	Place   int64  `json:"place,omitempty"`   // of it in the queue
	Version int64  `json:"version,omitempty"` // of the settings when it was queued
	Seen    int64  `json:"seen,omitempty"`    // of the settings by the last hook that ran
}

// Uniter holds all records of a unit's agent.
type Uniter struct {
	Op        *Op
	Workflow  Workflow
	Relations map[int]RelationState
	Members   map[int]map[string]MemberState // by relation and unit, or the service itself for its own settings
}

// Unit states; the others are its workflow's.
const (
	UnitPending = "pending" // its agent has installed nothing yet
	UnitStarted = "started" // its workflow's: the start hook is done
	UnitDown    = "down"    // its agent is gone
)

// HookRun is one hook that a unit has run, as `juju hook-history` shows it. Hooks
// that the charm does not have are not recorded.
type HookRun struct {
	Seq      int64     `json:"seq"`          // counts the unit's
	ID       string    `json:"id,omitempty"` // of the run, as the unit's folder notes it
	Hook     string    `json:"hook"`
	Relation string    `json:"relation,omitempty"` // "relation-3"; empty for a unit's hook
	Remote   string    `json:"remote,omitempty"`   // the unit that caused it
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Exit     int       `json:"exit"`              // its exit code, or -1 if it had none
	Failure  string    `json:"failure,omitempty"` // why it failed
	Changes  []string  `json:"changes,omitempty"` // settings that it wrote, as sanitize.HideSecrets reads them
	More     int       `json:"more,omitempty"`    // further changes, not listed

	Said *WorkloadStatus `json:"said,omitempty"` // what it said last of its unit's workload; nil: nothing
}

const (
	// MaxHookRuns is how many hooks of a unit are remembered.
	MaxHookRuns = 50
	// maxHookRunChanges is how many changes of each.
	maxHookRunChanges = 20
	// maxHookRunMessage is how much of what each has said, in bytes.
	maxHookRunMessage = 1 << 10
)

// AddHookRun records a hook that has ended, in place of the oldest record. It reads nothing: the caller,
// the only writer for the unit, numbers the records in Seq.
func (tx *Tx) AddHookRun(unit string, r HookRun) error {
	if n := len(r.Changes); n > maxHookRunChanges {
		r.Changes, r.More = r.Changes[:maxHookRunChanges], n-maxHookRunChanges
	}
	if s := r.Said; s != nil && len(s.Message) > maxHookRunMessage {
		r.Said = &WorkloadStatus{
			Status:  s.Status,
			Message: Truncate(s.Message, maxHookRunMessage),
			Since:   s.Since,
		}
	}

	return tx.keys.Put(keys.HookRun(unit, int(r.Seq%MaxHookRuns)), r)
}

// HookRuns lists the last hooks of a unit, the oldest first.
func (v *View) HookRuns(unit string) ([]HookRun, error) {
	runs := []HookRun{}
	err := ReadBelow(v, keys.UnitHistory(unit), func(_ string, r HookRun) { runs = append(runs, r) })
	slices.SortFunc(runs, func(a, b HookRun) int { return cmp.Compare(a.Seq, b.Seq) })
	return runs, err
}

// RecentHookRuns returns the last hooks of all units that have ended since, by unit, in no order.
func (v *View) RecentHookRuns(since time.Time) (map[string][]HookRun, error) {
	runs := map[string][]HookRun{}
	err := ReadBelow(v, keys.History, func(key string, r HookRun) {
		if unit, _ := HistoryOf(key); r.Ended.After(since) {
			runs[unit] = append(runs[unit], r)
		}
	})

	return runs, err
}
