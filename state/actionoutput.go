package state

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"bijou/state/keyspace"
)

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

// UnmarshalJSON reads both.
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

// Output reads what an action has written.
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
