// Package actions keeps what operators ask of single units: to run an action of the charm or a command, to
// run hooks by hand, to go on after an error. The units' agents do it.
package actions

import (
	"bytes"
	"encoding/json"
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
	// MaxWaiting is how many actions and commands may wait for one unit.
	MaxWaiting = 64
	// maxEnded is how many of one unit are remembered after their end.
	maxEnded = 50
	// maxProgressLines is how many lines of an action's progress are kept, the newest.
	maxProgressLines = 100
	// maxProgressLineBytes is how much of one line is kept, in bytes.
	maxProgressLineBytes = 2 << 10
	// maxInlineOutput is how large an output may be in its action's record, in bytes of JSON; larger ones are
	// blobs.
	maxInlineOutput = 64 << 10
	// MaxText bounds an action's parameters or command, and its results, in bytes of JSON.
	MaxText = 64 << 10
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

	Relation *Relation `json:"relation,omitempty"` // that a command is about; nil: none

	Status    Status    `json:"status"`
	Cancel    bool      `json:"-"` // it runs, and is to be ended
	Enqueued  time.Time `json:"enqueued"`
	Started   time.Time `json:"started,omitzero"`
	Run       string    `json:"run,omitempty"` // the id of its run, as the unit's folder notes it
	Completed time.Time `json:"completed,omitzero"`

	Progress []Line `json:"progress,omitempty"`
	Outcome
}

// Relation is the relation that a command is about, as a hook of it would be.
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
	Message string         `json:"message,omitempty"` // why it failed
	Code    *int           `json:"code,omitempty"`    // of its process; nil: that did not exit by itself
	Results map[string]any `json:"results,omitempty"`
	Output  Output         `json:"output,omitzero"`
}

// Ended reports whether the action is in a final state.
func (a Action) Ended() bool {
	return a.Status == Completed || a.Status == Failed || a.Status == Cancelled
}

// IsCommand reports whether it is a command, and no action of the charm.
func (a Action) IsCommand() bool { return a.Name == "" }

// Get reads one action. An action that waits for a unit that is gone counts as cancelled. It returns
// state.ErrNotFound if there is no such action.
func Get(v *state.View, id int) (Action, error) {
	a, err := keyspace.LoadExisting[Action](v.Keys(), keys.Action(id), "action %d not found", id)
	if err != nil {
		return Action{}, err
	}

	a.ID = id
	if a.Ended() {
		return a, nil
	}

	_, there, err := v.Keys().Get(keys.Unit(a.Unit))
	if err == nil && !there {
		a.Status = Cancelled
		a.Message = "its unit is gone"
	}

	return a, err
}

// List reads the actions of a unit (empty: of all), by id.
func List(v *state.View, unit string) ([]Action, error) {
	ids, err := listIDs(v, unit)
	if err != nil {
		return nil, err
	}

	actions := make([]Action, 0, len(ids))
	for _, id := range ids {
		a, err := Get(v, id)
		if v.Keys().Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}

	return actions, nil
}

func listIDs(v *state.View, unit string) (ids []int, err error) {
	if unit != "" {
		q, _, err := keyspace.Load[queue](v.Keys(), keys.ActionQueue(unit))
		if err != nil {
			return nil, err
		}

		ids = append(q.Ended, q.Waiting...)
		slices.Sort(ids)
		return ids, nil
	}

	kvs, err := v.Keys().List(keys.Actions)
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

// Watch covers an action.
func Watch(id int) state.Scope { return state.Scope{Keys: []string{keys.Action(id)}} }

// Declared reads the actions of a unit's charm: the one that is deployed, before that
// the service's. state.ErrNotFound.
func Declared(v *state.View, unit string) (map[string]charm.Action, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return nil, err
	}
	c, err := v.CharmOf(u.Service, u.Charm)
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
func putOutput(tx *state.Tx, o Output) (Output, error) {
	data, err := keyspace.Encode("output", o)
	if err != nil || len(data) <= maxInlineOutput {
		return o, err
	}
	return Output{Dropped: o.Dropped, Blob: tx.Keys().AddBlob(data)}, nil
}

// ReadOutput reads the output of an action.
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
