package juju

import (
	"encoding/base64"
	"unicode/utf8"

	"bijou/state/actions"
	"bijou/state/number"
)

// actionDoc is an action and its output, as commands print them.
type actionDoc struct {
	ID         int            `json:"id" yaml:"id"`
	Unit       string         `json:"unit" yaml:"unit"`
	Action     string         `json:"action,omitempty" yaml:"action,omitempty"`
	Command    []string       `json:"command,omitempty" yaml:"command,omitempty,flow"`
	Parameters map[string]any `json:"parameters,omitempty" yaml:"parameters,omitempty"`
	Status     string         `json:"status" yaml:"status"`
	Message    string         `json:"message,omitempty" yaml:"message,omitempty"`
	Results    map[string]any `json:"results,omitempty" yaml:"results,omitempty"`
	Code       *int           `json:"code,omitempty" yaml:"code,omitempty"` // the exit code, or nil if there is none
	Stdout     string         `json:"stdout,omitempty" yaml:"stdout,omitempty"`
	StdoutForm string         `json:"stdout-encoding,omitempty" yaml:"stdout-encoding,omitempty"` // "base64", or empty for text
	Stderr     string         `json:"stderr,omitempty" yaml:"stderr,omitempty"`
	StderrForm string         `json:"stderr-encoding,omitempty" yaml:"stderr-encoding,omitempty"`
	Dropped    int64          `json:"bytes-missing,omitempty" yaml:"bytes-missing,omitempty"`
	Log        []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Enqueued   string         `json:"enqueued" yaml:"enqueued"`
	Started    string         `json:"started,omitempty" yaml:"started,omitempty"`
	Completed  string         `json:"completed,omitempty" yaml:"completed,omitempty"`
}

// newActionDoc returns the document of an action and its output.
func newActionDoc(a actions.Action, out actions.Output) actionDoc {
	doc := actionDoc{
		ID:         a.ID,
		Unit:       a.Unit,
		Action:     a.Name,
		Command:    a.Command,
		Status:     string(a.Status),
		Parameters: number.DictionaryForPrinting(a.Parameters),
		Results:    number.DictionaryForPrinting(a.Results),
		Message:    a.Message,
		Code:       a.Code,
		Dropped:    out.Dropped,
		Enqueued:   formatTime(a.Enqueued),
		Started:    formatTime(a.Started),
		Completed:  formatTime(a.Completed),
	}

	doc.Stdout, doc.StdoutForm = encodeOutput(out.Stdout)
	doc.Stderr, doc.StderrForm = encodeOutput(out.Stderr)
	for _, line := range a.Progress {
		doc.Log = append(doc.Log, formatTime(line.Time)+" "+line.Message)
	}
	return doc
}

// encodeOutput returns output as text, or in base64 if output is not valid UTF-8, since JSON can hold only
// UTF-8. form is "base64", or empty for text, as in Juju.
func encodeOutput(output []byte) (encoded, form string) {
	if utf8.Valid(output) {
		return string(output), ""
	}
	return base64.StdEncoding.EncodeToString(output), "base64"
}

// printActions prints one action as a document, and several actions as a list.
func printActions(o *operator, awaited []*awaitedAction, format string) error {
	var docs []actionDoc
	for _, a := range awaited {
		docs = append(docs, newActionDoc(a.action, a.output))
	}
	if len(docs) == 1 {
		return o.encode(format, docs[0])
	}

	return o.encode(format, docs)
}
