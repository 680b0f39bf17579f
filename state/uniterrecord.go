package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/state/keys"
)

// NoRelation is the value of Hook.Relation for a hook that does not belong to a relation.
const NoRelation = -1

// Hook is one run of a charm's hook, or of an operator's action or command.
type Hook struct {
	Kind          string `json:"kind"`     // "install", "relation-changed"
	Name          string `json:"name"`     // the name of its file: "db-relation-changed"
	Relation      int    `json:"relation"` // the relation's id, or NoRelation
	RelationName  string `json:"relation-name,omitempty"`
	RemoteUnit    string `json:"remote-unit,omitempty"` // empty in a relation-broken hook
	RemoteService string `json:"remote-service,omitempty"`
	Action        int    `json:"action,omitempty"` // the id of the operator's action or command

	Secret         string `json:"secret,omitempty"`          // the id of the secret that the hook concerns
	SecretRevision int    `json:"secret-revision,omitempty"` // the secret's revision, or its newest one
	Storage        string `json:"storage,omitempty"`         // the id of the storage that the hook concerns
}

// The kinds of a Hook that is an operator's action or command.
const (
	KindAction  = "action"
	KindCommand = "command"
)

// String names the hook, action or command in logs. Action is the id of an action or a command.
func (h Hook) String() string {
	switch h.Kind {
	case KindAction:
		return fmt.Sprintf("action %d (%s)", h.Action, h.Name)
	case KindCommand:
		return fmt.Sprintf("command %d", h.Action)
	}

	return fmt.Sprintf("hook %q", h.Name)
}

// Op is the hook that a unit is running, or was running when its agent was killed. The unit has an Op from
// the beginning of a hook until its end.
type Op struct {
	ID       string    `json:"id"` // the id of this run
	Hook     Hook      `json:"hook"`
	ClientID string    `json:"client-id,omitempty"` // the id by which hook tools show that they belong to this run
	Started  time.Time `json:"started,omitzero"`
	Holder   string    `json:"held-by,omitempty"` // the operator who runs the hook by hand; empty if the agent runs it
	Expect   string    `json:"expect,omitempty"`  // the workflow's state if the hook succeeds
	Version  int64     `json:"version,omitempty"` // the version of the settings or configuration that the hook sees
}

// Identity returns the id of the run, which distinguishes the runs of a hook.
func (op Op) Identity() any { return op.ID }

// Failure describes the error state of a unit or a relation.
type Failure struct {
	Hook     Hook      `json:"hook"`
	Message  string    `json:"message"`
	Stderr   string    `json:"stderr,omitempty"` // the last line that the hook wrote to stderr
	Logged   string    `json:"logged,omitempty"` // the last line that the hook logged as an error, if Stderr is empty
	Charm    string    `json:"charm,omitempty"`  // the URL of the charm that has the hook; empty for a relation's hook
	Since    time.Time `json:"since"`            // the time of the first failure
	Attempts int       `json:"attempts"`
	RetryAt  time.Time `json:"retry-at,omitzero"` // when the hook is retried automatically; zero means never

	// Backoff counts the failures that decide the delay until RetryAt. It starts at 0 again when an operator
	// retries the hook. A failure does not count if the end of the agent caused it.
	Backoff int `json:"backoff,omitempty"`

	// Interrupted reports whether an operator interrupted the hook, so that it is not retried automatically.
	Interrupted bool `json:"interrupted,omitempty"`

	// ClientID is the client id of the last attempt. The agent uses it to find processes that the attempt
	// left running. It is empty if an older binary recorded the failure.
	ClientID string `json:"client-id,omitempty"`
}

// Identity returns the time of the first failure, which distinguishes a unit's failures.
func (f Failure) Identity() any { return f.Since.UnixNano() }

// LogCommand returns the command that shows the unit's log. It returns "" if an operator interrupted the hook
// and so knows the reason.
func (f Failure) LogCommand(unit string) string {
	if f.Interrupted {
		return ""
	}
	return "juju debug-log --unit " + unit
}

// Workflow is a unit's progress through its life.
type Workflow struct {
	State           string   `json:"state,omitempty"`          // "", "installed", "started", "stopped", "removed", "install-error" ...
	Charm           string   `json:"charm,omitempty"`          // the URL of the unpacked charm
	Deploying       string   `json:"deploying,omitempty"`      // the URL of the charm that is replacing it, and may already be in place
	ConfigVersion   int64    `json:"config-version,omitempty"` // the version that the last config-changed saw
	Failure         *Failure `json:"failure,omitempty"`        // set exactly in an error state
	NextPlace       int64    `json:"next-place,omitempty"`     // the next free place in the queue of hooks
	ConfigOwed      bool     `json:"restarted,omitempty"`      // config-changed must run, for instance after a restart
	ConfigOwedFirst bool     `json:"upgraded,omitempty"`       // config-changed must run for a new charm, before any leader hook
	ToldElected     bool     `json:"elected,omitempty"`        // the last leadership hook that ran was leader-elected
	LeaderVersion   int64    `json:"leader-version,omitempty"` // the version of the leader settings that leader-settings-changed saw
	UpgradeOwed     bool     `json:"upgrade-owed,omitempty"`   // upgrade-charm must run, before any other hook of Charm

	// ResourcesVersion is the version of the service's resources that the last install or upgrade-charm saw.
	ResourcesVersion int64 `json:"resources-version,omitempty"`

	// Uninstalled reports whether install must still run although State is set. This happens if a hook before
	// install has failed.
	Uninstalled bool `json:"uninstalled,omitempty"`
}

// The states of a unit's relation.
const (
	RelationStart = "start" // not yet entered
	RelationUp    = "up"
	RelationEnded = "departed" // its last hook has run
	RelationError = "error"
)

// RelationState is a unit's progress in one relation.
type RelationState struct {
	State   string   `json:"state"`
	Failure *Failure `json:"failure,omitempty"` // set exactly in state error

	// CreatedOwed reports whether relation-created must run, before any other hook of the relation.
	CreatedOwed bool `json:"created-owed,omitempty"`

	// These facts are for the unit's last hooks in the relation, which can run after the relation's record
	// was removed.
	Name          string `json:"name,omitempty"` // the relation's name in the unit's charm
	RemoteService string `json:"remote-service,omitempty"`
	Peer          bool   `json:"peer,omitempty"`
}

// MemberState is a unit's record of one member of a relation, or of the other service's own settings there:
// the last hook that ran for the member, and the hook that is queued.
type MemberState struct {
	State   string `json:"state,omitempty"`
	Pending string `json:"pending,omitempty"` // the queued hook
	Place   int64  `json:"place,omitempty"`   // the queued hook's place in the queue
	Version int64  `json:"version,omitempty"` // the version of the settings when the hook was queued
	Seen    int64  `json:"seen,omitempty"`    // the version of the settings that the last hook saw
}

// Uniter holds all records of a unit's agent.
type Uniter struct {
	Op        *Op // nil if no hook is running
	Workflow  Workflow
	Relations map[int]RelationState
	// Members has the records by relation and unit. The record of a service's own settings is under the
	// service's name.
	Members map[int]map[string]MemberState
}

// These are some states of a unit. A unit also has the states of its workflow.
const (
	UnitPending = "pending" // its agent has not installed anything yet
	UnitStarted = "started" // the workflow's state after the start hook
	UnitDown    = "down"    // its agent is gone
)

// HookRun is one hook that a unit has run, as `juju hook-history` shows it. Hooks that the charm does not
// have are not recorded.
type HookRun struct {
	Seq      int64     `json:"seq"`          // the number of the run among the unit's runs
	ID       string    `json:"id,omitempty"` // the id of the run, which is also in the unit's directory
	Hook     string    `json:"hook"`
	Relation string    `json:"relation,omitempty"` // "relation-3"; empty for a unit's hook
	Remote   string    `json:"remote,omitempty"`   // the remote unit or service that caused it
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Exit     int       `json:"exit"`              // its exit code, or -1 if it has none
	Failure  string    `json:"failure,omitempty"` // why it failed
	Changes  []string  `json:"changes,omitempty"` // settings that it wrote, with secrets hidden
	More     int       `json:"more,omitempty"`    // the number of further changes

	Said *WorkloadStatus `json:"said,omitempty"` // the last workload status that it set; nil if it set none
}

const (
	// MaxHookRuns is how many runs of a unit are recorded.
	MaxHookRuns = 50
	// maxHookRunChanges limits the recorded changes of one run.
	maxHookRunChanges = 20
	// maxHookRunMessage limits the recorded status message of one run, in bytes.
	maxHookRunMessage = 1 << 10
)

// AddHookRun records a hook that has ended, and keeps only the last MaxHookRuns records of the unit. It does not
// read the existing records, so the caller must number the runs in Seq. It truncates a long list of changes and
// a long status message, and drops the data of a status whose message it truncates.
func (tx *Tx) AddHookRun(unit string, r HookRun) error {
	if n := len(r.Changes); n > maxHookRunChanges {
		r.Changes = r.Changes[:maxHookRunChanges]
		r.More = n - maxHookRunChanges
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

// RecentHookRuns returns the recorded hooks that have ended since the given time, by unit, in no order. last has
// the time when each unit's last recorded hook ended, however long ago.
func (v *View) RecentHookRuns(since time.Time) (runs map[string][]HookRun, last map[string]time.Time, err error) {
	runs = map[string][]HookRun{}
	last = map[string]time.Time{}
	err = ReadBelow(v, keys.History, func(key string, r HookRun) {
		unit, _ := HistoryOf(key)
		if r.Ended.After(last[unit]) {
			last[unit] = r.Ended
		}
		if r.Ended.After(since) {
			runs[unit] = append(runs[unit], r)
		}
	})

	return runs, last, err
}
