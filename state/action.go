package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// ActionStatus is the state of an action.
type ActionStatus string

// The states of an action. The last three are final.
const (
	ActionPending   ActionStatus = "pending"
	ActionRunning   ActionStatus = "running"
	ActionCompleted ActionStatus = "completed"
	ActionFailed    ActionStatus = "failed"
	ActionCancelled ActionStatus = "cancelled"
)

const (
	// MaxWaitingActions is how many actions and commands may wait for one unit.
	MaxWaitingActions = 64
	// maxEndedActions is how many of one unit are remembered after their end.
	maxEndedActions = 50
	// maxProgressLines is how many lines of an action's progress are kept, the newest.
	maxProgressLines = 100
	// maxProgressLineBytes is how much of one line is kept, in bytes.
	maxProgressLineBytes = 2 << 10
	// MaxActionText bounds an action's parameters or command, and its results, in bytes of JSON.
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

	Relation *ActionRelation `json:"relation,omitempty"` // that a command is about; nil: none

	Status    ActionStatus `json:"status"`
	Cancel    bool         `json:"-"` // it runs, and is to be ended
	Enqueued  time.Time    `json:"enqueued"`
	Started   time.Time    `json:"started,omitzero"`
	Run       string       `json:"run,omitempty"` // the id of its run, as the unit's folder notes it
	Completed time.Time    `json:"completed,omitzero"`

	Progress []ActionLine `json:"progress,omitempty"`
	ActionEnd
}

// ActionRelation is the relation that a command is about, as a hook of it would be.
type ActionRelation struct {
	ID            int    `json:"id"`
	Name          string `json:"name"` // in the unit's charm
	RemoteUnit    string `json:"remote-unit,omitempty"`
	RemoteService string `json:"remote-service,omitempty"`
}

// ActionLine is one line of an action's progress.
type ActionLine struct {
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// ActionEnd is the outcome of an action.
type ActionEnd struct {
	Message string         `json:"message,omitempty"` // why it failed
	Code    *int           `json:"code,omitempty"`    // of its process; nil: that did not exit by itself
	Results map[string]any `json:"results,omitempty"`
	Output  Output         `json:"output,omitzero"`
}

// Ended reports whether the action is in a final state.
func (a Action) Ended() bool {
	return a.Status == ActionCompleted || a.Status == ActionFailed || a.Status == ActionCancelled
}

// IsCommand reports whether it is a command, and no action of the charm.
func (a Action) IsCommand() bool { return a.Name == "" }

// Action reads one action. An action that waits for a unit that is gone counts as cancelled. It returns
// ErrNotFound if there is no such action.
func (v *View) Action(id int) (Action, error) {
	a, err := keyspace.LoadExisting[Action](v.keys, keys.Action(id), "action %d not found", id)
	if err != nil {
		return Action{}, err
	}

	a.ID = id
	if a.Ended() {
		return a, nil
	}

	if _, err = v.Unit(a.Unit); errors.Is(err, ErrNotFound) {
		a.Status = ActionCancelled
		a.Message = "its unit is gone"
		err = nil
	}

	return a, err
}

// Actions reads the actions of a unit (empty: of all), by id.
func (v *View) Actions(unit string) ([]Action, error) {
	ids, err := v.actionIDs(unit)
	if err != nil {
		return nil, err
	}

	actions := make([]Action, 0, len(ids))
	for _, id := range ids {
		a, err := v.Action(id)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}

	return actions, nil
}

func (v *View) actionIDs(unit string) (ids []int, err error) {
	if unit != "" {
		q, _, err := keyspace.Load[actionQueue](v.keys, keys.ActionQueue(unit))
		if err != nil {
			return nil, err
		}

		ids = append(q.Ended, q.Waiting...)
		slices.Sort(ids)
		return ids, nil
	}

	kvs, err := v.keys.List(keys.Actions)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		if id, ok := keys.CutInt(kv.Key, keys.Actions); ok {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)
	return ids, nil
}

// UnitActions reads the actions of a unit's charm: the one that is deployed, before that
// the service's. ErrNotFound.
func (v *View) UnitActions(unit string) (map[string]charm.Action, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return nil, err
	}
	c, err := v.charmOf(u.Service, u.Charm)
	return c.Actions, err
}

// MaxOutput bounds what is kept of each of an action's two outputs, in bytes.
const MaxOutput = 1 << 20

// Output has what the process of an action has written, each stream up to MaxOutput;
// Dropped counts what came after that, in bytes of both together.
type Output struct {
	Stdout  Bytes `json:"stdout,omitempty"`
	Stderr  Bytes `json:"stderr,omitempty"`
	Dropped int64 `json:"dropped,omitempty"`

	// Blob holds Stdout and Stderr where they are large.
	Blob string `json:"blob,omitempty"`
}

// Bytes is text wherever it is UTF-8, so that one can read it in the store; anything
// else is kept all the same.
type Bytes []byte

// bytesDoc keeps what JSON's strings cannot.
type bytesDoc struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes text as a string, anything else as {"base64": ...}.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(bytesDoc{b})
}

// UnmarshalJSON reads both forms.
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

// putOutput moves a large output to a blob, so that an action's record stays small.
func (tx *Tx) putOutput(o Output) (Output, error) {
	data, err := keyspace.Encode("output", o)
	if err != nil || len(data) <= maxInlineBytes {
		return o, err
	}
	return Output{Dropped: o.Dropped, Blob: tx.keys.AddBlob(data)}, nil
}

// Output reads the output of an action.
func (v *View) Output(a Action) (Output, error) {
	if a.Output.Blob == "" {
		return a.Output, nil
	}
	data, err := v.keys.ReadBlob(a.Output.Blob)
	if err != nil {
		return Output{}, err
	}

	var o Output
	err = json.Unmarshal(data, &o)
	return o, err
}
