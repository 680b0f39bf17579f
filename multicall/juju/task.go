package juju

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// taskError returns err with the prefix of a failed task, which programs written for Juju look for. It
// returns nil for nil.
func taskError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("task failed: %w", err)
}

// timeoutError returns err with the prefix of a task that has not ended in time. It returns nil for nil.
func timeoutError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("timed out: %w", err)
}

const taskFormat = "task" // JSON with the keys of Juju 3

// task is an action or a command as Juju 3 shows it.
type task struct {
	ID      string         `json:"id" yaml:"id"`
	Unit    string         `json:"unit,omitempty" yaml:"unit,omitempty"`
	Status  string         `json:"status" yaml:"status"`
	Message string         `json:"message,omitempty" yaml:"message,omitempty"`
	Log     []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Results map[string]any `json:"results" yaml:"results"` // with return-code, stdout and stderr
}

// printTasks prints the actions under Juju 3's keys, by unit.
func printTasks(o *operator, format string, actions []*awaitedAction) error {
	tasks := map[string]task{}
	for _, a := range actions {
		doc := newActionDoc(a.action, a.output)
		tasks[doc.Unit] = task{
			ID:      strconv.Itoa(doc.ID),
			Unit:    doc.Unit,
			Status:  doc.Status,
			Message: cmp.Or(doc.Message, a.stuckReason),
			Log:     doc.Log,
			Results: taskResults(doc.Results, doc.Code, a.output.Stdout, a.output.Stderr),
		}
	}

	return o.encode(format, tasks)
}

// taskResults returns the results that the action has set, with its exit code and output under Juju 3's keys.
// code is nil if the action has no exit code.
func taskResults(set map[string]any, code *int, stdout, stderr []byte) map[string]any {
	results := map[string]any{}
	maps.Copy(results, set)
	if code != nil {
		results["return-code"] = *code
	}

	for key, output := range map[string][]byte{"stdout": stdout, "stderr": stderr} {
		if len(output) == 0 {
			continue
		}
		encoded, encoding := encodeOutput(output)
		results[key] = encoded
		if encoding != "" {
			results[key+"-encoding"] = encoding
		}
	}

	return results
}

// formatTime returns the time in UTC by RFC 3339, or "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
