// Package actions records operators' requests to single units: to run an action of the charm or a command, to
// run hooks by hand, and to continue after an error. The units' agents carry out these requests.
package actions

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Status is the state of an action.
type Status string

// The states of an action. The last three are final.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

const (
	// MaxWaiting limits the actions and commands that wait for one unit.
	MaxWaiting = 64
	// maxEnded is how many ended actions and commands of a unit are recorded.
	maxEnded = 50
	// maxProgressLines is how many of an action's newest lines of progress are recorded.
	maxProgressLines = 100
	// maxProgressLineBytes limits one recorded line of progress, in bytes.
	maxProgressLineBytes = 2 << 10
	// maxProgressBytes limits all recorded lines of progress together, in bytes of JSON. In JSON, a control
	// character takes six bytes.
	maxProgressBytes = 256 << 10
	// maxInlineOutput limits the output that is stored in an action's record, in bytes of JSON. Larger
	// output is stored as a blob.
	maxInlineOutput = 64 << 10
	// MaxText limits an action's parameters or command, and its results, in bytes of JSON.
	MaxText = 64 << 10
)

// Action is an operator's request to a unit: to run an action of its charm, or a command.
type Action struct {
	ID   int    `json:"-"`
	Unit string `json:"unit"`
	// Name is the name of the charm's action. It is empty for a command.
	Name string `json:"name,omitempty"`
	// Parameters are the action's parameters with all defaults, as JSON types.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Command is the program and its arguments. If there is only one element, it is a line for a shell.
	Command []string `json:"command,omitempty"`

	Relation *Relation `json:"relation,omitempty"` // the relation that a command concerns, or nil

	Status    Status    `json:"status"`
	Cancel    bool      `json:"-"` // the agent must terminate the running action
	Enqueued  time.Time `json:"enqueued"`
	Started   time.Time `json:"started,omitzero"`
	Run       string    `json:"run,omitempty"` // the id of the action's run, which the unit's directory also records
	Completed time.Time `json:"completed,omitzero"`

	Progress []Line `json:"progress,omitempty"`
	Outcome
}

// Relation is the relation that a command concerns. The command sees the relation as the relation's hooks do.
type Relation struct {
	ID            int    `json:"id"`
	Name          string `json:"name"` // in the unit's charm
	RemoteUnit    string `json:"remote-unit,omitempty"`
	RemoteService string `json:"remote-service,omitempty"`
}

// Line is one line of an action's progress.
type Line struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// Outcome is the outcome of an action.
type Outcome struct {
	Message string         `json:"message,omitempty"` // why the action failed
	Code    *int           `json:"code,omitempty"`    // the process's exit code; nil if the process was killed
	Results map[string]any `json:"results,omitempty"`
	Output  Output         `json:"output,omitzero"`
}

// Ended reports whether the action is in a final state.
func (a Action) Ended() bool {
	return a.Status == Completed || a.Status == Failed || a.Status == Cancelled
}

// IsCommand reports whether a is a command, not an action of the charm.
func (a Action) IsCommand() bool { return a.Name == "" }

// Get reads an action. An action that has not ended counts as cancelled if its unit is gone. It returns
// [state.ErrNotFound] if there is no such action.
func Get(v *state.View, id int) (Action, error) {
	a, err := keyspace.LoadExisting[Action](v.Keys(), keys.Action(id), "action %d not found", id)
	if err != nil {
		return Action{}, err
	}

	a.ID = id
	if a.Ended() {
		return a, nil
	}

	_, unitExists, err := v.Keys().Get(keys.Unit(a.Unit))
	if err != nil {
		return a, err
	}
	if !unitExists {
		a.Status = Cancelled
		a.Message = "its unit has been removed"
	}

	return a, nil
}

// List reads the actions of a unit, or of all units if unit is empty, sorted by id. It skips actions in a
// unit's queue that do not exist or that belong to another unit, and actions whose records are damaged.
func List(v *state.View, unit string) ([]Action, error) {
	ids, err := listIDs(v, unit)
	if err != nil {
		return nil, err
	}

	actions := make([]Action, 0, len(ids))
	for _, id := range ids {
		a, err := Get(v, id)
		if v.Keys().Skips(err) || errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if unit == "" || a.Unit == unit {
			actions = append(actions, a)
		}
	}

	return actions, nil
}

// listIDs returns the ids of the unit's actions, or of all actions if unit is empty, sorted.
func listIDs(v *state.View, unit string) ([]int, error) {
	if unit != "" {
		q, err := keyspace.LoadOrZero[queue](v.Keys(), keys.ActionQueue(unit))
		if err != nil {
			return nil, err
		}
		ids := slices.Concat(q.Ended, q.Waiting)
		slices.Sort(ids)
		return ids, nil
	}

	kvs, err := v.Keys().List(keys.Actions)
	if err != nil {
		return nil, err
	}

	var ids []int
	for _, kv := range kvs {
		if id, ok := keys.CutInt(kv.Key, keys.Actions); ok {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)
	return ids, nil
}

// Watch returns the [state.Scope] of the record of an action.
func Watch(id int) state.Scope { return state.Scope{Keys: []string{keys.Action(id)}} }

// Declared reads the actions of the charm that is deployed on a unit, or of its service's charm before the
// first deployment. It returns [state.ErrNotFound] if there is no such unit.
func Declared(v *state.View, unit string) (map[string]charm.Action, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return nil, err
	}
	c, err := v.CharmOf(u.Service, u.Charm)
	return c.Actions, err
}

// MaxOutput limits each of an action's two recorded output streams, in bytes.
const MaxOutput = 1 << 20

// Output is the output of an action's process, up to MaxOutput of each stream.
type Output struct {
	Stdout  Bytes `json:"stdout,omitempty"`
	Stderr  Bytes `json:"stderr,omitempty"`
	Dropped int64 `json:"dropped,omitempty"` // how many bytes of both streams were not recorded

	// Blob is the sum of the blob with Stdout and Stderr, if they are too large for the record.
	Blob string `json:"blob,omitempty"`
}

// Bytes is output that is stored as a JSON string if it is UTF-8, so that it is readable in the store, and as
// base64 otherwise.
type Bytes []byte

// bytesDoc is the JSON of bytes that are not UTF-8.
type bytesDoc struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON encodes UTF-8 as a string and anything else as {"base64": ...}.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(bytesDoc{b})
}

// UnmarshalJSON decodes both forms of MarshalJSON, a string and {"base64": ...}.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var doc bytesDoc
		err := json.Unmarshal(data, &doc)
		*b = doc.Base64
		return err
	}

	var text string
	err := json.Unmarshal(data, &text)
	*b = Bytes(text)
	return err
}

// putOutput returns the output as an action's record contains it. It moves a large output to a blob, so that
// the record stays small.
func putOutput(tx *state.Tx, o Output) (Output, error) {
	data, err := keyspace.Encode("output", o)
	if err != nil {
		return o, err
	}
	if len(data) <= maxInlineOutput {
		return o, nil
	}
	return Output{Dropped: o.Dropped, Blob: tx.Keys().AddBlob(data)}, nil
}

// ReadOutput returns the output of an action. It reads a large output from its blob.
func ReadOutput(v *state.View, a Action) (Output, error) {
	if a.Output.Blob == "" {
		return a.Output, nil
	}
	data, err := v.Keys().ReadBlob(a.Output.Blob)
	if err != nil {
		return Output{}, err
	}

	var o Output
	err = json.Unmarshal(data, &o)
	return o, err
}
