package juju

import (
	"bijou/state"
	"bijou/state/number"
)

type actionDoc struct {
	ID         int            `json:"id" yaml:"id"`
	Unit       string         `json:"unit" yaml:"unit"`
	Action     string         `json:"action,omitempty" yaml:"action,omitempty"`
	Command    []string       `json:"command,omitempty" yaml:"command,omitempty,flow"`
	Parameters map[string]any `json:"parameters,omitempty" yaml:"parameters,omitempty"`
	Status     string         `json:"status" yaml:"status"`
	Message    string         `json:"message,omitempty" yaml:"message,omitempty"`
	Results    map[string]any `json:"results,omitempty" yaml:"results,omitempty"`
	Code       *int           `json:"code,omitempty" yaml:"code,omitempty"`
	Stdout     string         `json:"stdout,omitempty" yaml:"stdout,omitempty"`
	Stderr     string         `json:"stderr,omitempty" yaml:"stderr,omitempty"`
	Dropped    int64          `json:"bytes-missing,omitempty" yaml:"bytes-missing,omitempty"`
	Log        []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Enqueued   string         `json:"enqueued" yaml:"enqueued"`
	Started    string         `json:"started,omitempty" yaml:"started,omitempty"`
	Completed  string         `json:"completed,omitempty" yaml:"completed,omitempty"`
}

func newActionDoc(a state.Action, out state.Output) actionDoc {
	doc := actionDoc{
		ID: a.ID, Unit: a.Unit, Action: a.Name, Command: a.Command, Status: string(a.Status),
		Parameters: number.DictionaryForPrinting(a.Parameters),
		Results:    number.DictionaryForPrinting(a.Results),
		Message:    a.Message, Code: a.Code,
		Stdout: string(out.Stdout), Stderr: string(out.Stderr), Dropped: out.Dropped,
		Enqueued: formatTime(a.Enqueued), Started: formatTime(a.Started), Completed: formatTime(a.Completed),
	}

	for _, line := range a.Progress {
		doc.Log = append(doc.Log, formatTime(line.Time)+" "+line.Message)
	}
	return doc
}

// printActions prints a single action as a document, several as a list.
func printActions(o *operator, all []*awaitedAction, format string) error {
	var docs []actionDoc
	for _, a := range all {
		docs = append(docs, newActionDoc(a.action, a.output))
	}
	if len(docs) == 1 {
		return o.encode(format, docs[0])
	}

	return o.encode(format, docs)
}
