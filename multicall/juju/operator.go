package juju

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/text"
)

// operator is one call of juju.
type operator struct {
	ctx     context.Context
	streams console.Streams
	bar     *console.Progress // nil if no progress is shown
	home    home.Home
	name    string // the environment's name, as given by -e
	parts   Parts
	args    []string // the command line, without the program's name
	command []string // the words after the two dashes of `juju run`

	affected []string // the services and units that --wait waits for
	until    string   // the state that --wait waits for

	hasWarned bool // warnIfDown has printed its warning
}

// formatCount returns n with the noun in the singular or plural, such as "1 unit" or "2 units".
func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// note prints a line to stderr, since stdout is for data. It removes the progress bar first.
func (o *operator) note(format string, args ...any) {
	if o.bar != nil {
		o.bar.End()
	}
	fmt.Fprintln(o.streams.Err, console.EscapeText(fmt.Sprintf(format, args...)))
}

// encode prints data as YAML, or as one line of JSON if the format is json.
func (o *operator) encode(format string, data any) error {
	encoded, err := encodeAs(format, data)
	if err != nil {
		return err
	}

	_, err = o.streams.Out.Write(encoded)
	return err
}

// encodeAs returns data as YAML, or as one line of JSON if the format is json. JSON can contain only UTF-8, so
// encodeAs returns an error if a value has other bytes.
func encodeAs(format string, data any) ([]byte, error) {
	if format != "json" {
		encoded, err := text.MarshalYAML(data)
		if err != nil {
			return nil, fmt.Errorf("internal error: %w", err)
		}
		return encoded, nil
	}

	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	if text.LosesBytes(encoded) {
		return nil, console.Hint(errors.New("cannot print JSON: a value is not UTF-8"),
			"to print the value in base64: --format yaml")
	}
	return append([]byte(text.EscapeJSON(string(encoded))), '\n'), nil
}

// printTable prints the table if the format is tabular, and the data in any other format.
func (o *operator) printTable(format string, data any, table *console.Table) error {
	if format != "tabular" {
		return o.encode(format, data)
	}
	return table.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

// openChosen opens the state of the environment that -e names, or of the current environment, for f. It warns
// if the environment's background process is not running, since machine 0 then does not act on f's changes.
func (o *operator) openChosen(f func(s *state.State) error) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	return o.openState(e, func(s *state.State) error {
		o.warnIfDown(e)
		return f(s)
	})
}

// openTimeout is how long a command tries to open a store. It is short, since the operator is waiting.
const openTimeout = 5 * time.Second

// openState opens the environment's state for f. It returns an error if the environment's directory is a copy.
func (o *operator) openState(e home.Environment, f func(s *state.State) error) error {
	return o.openUnchecked(e, func(s *state.State) error {
		if err := o.refuseCopy(e, s); err != nil {
			return err
		}
		return f(s)
	})
}

// openUnchecked opens the environment's store for f. It does not check whether the environment's directory is
// a copy.
func (o *operator) openUnchecked(e home.Environment, f func(s *state.State) error) error {
	// The timeout limits only Open, and not f.
	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	s, err := state.Open(ctx, e.State)
	cancel()
	if err != nil {
		return err
	}
	s.SetProgress(o.reportSteps)
	s.SetDamaged(func(err error) { o.note("warning: the state is damaged: %v", err) })

	err = f(s)
	return errors.Join(err, s.Close())
}

// reportSteps shows the progress of a long job of the command. It does nothing without a progress bar, or if the
// size of the job is unknown.
func (o *operator) reportSteps(s state.Steps) {
	if o.bar != nil && s.Total > 0 {
		o.bar.At(s.What, s.Done, s.Total)
	}
}

// reportInterval is short enough for the progress bar to appear promptly.
const reportInterval = 100 * time.Millisecond

// reportDuring runs one step of a long job, and returns the step's error. It reports the progress again and again
// until the step ends. The progress bar appears only after a delay, and without further reports, a long first
// step would look like a hang.
func (o *operator) reportDuring(progress state.Steps, step func() error) error {
	// With the buffer, the step's goroutine can end even after a panic in this goroutine.
	ended := make(chan error, 1)
	go func() { ended <- step() }()

	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()

	for {
		o.reportSteps(progress)
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
		}
	}
}

// silenced returns an operator that prints nothing, for rehearsals.
func (o *operator) silenced() *operator {
	silent := *o
	silent.streams.Out = io.Discard
	silent.streams.Err = io.Discard
	return &silent
}

// update runs f in one update of the chosen environment's state. f runs again after a conflict with another
// process's change.
func (o *operator) update(f func(tx *state.Tx) error) error {
	return o.openChosen(func(s *state.State) error { return s.Update(o.ctx, f) })
}

// view runs f in one view of the chosen environment's state.
func (o *operator) view(f func(v *state.View) error) error {
	return o.openChosen(func(s *state.State) error { return s.View(o.ctx, f) })
}

// readChosen returns the result of read, in one view of the chosen environment.
func readChosen[T any](o *operator, read func(v *state.View) (T, error)) (found T, err error) {
	err = o.openChosen(func(s *state.State) (err error) {
		found, err = state.Read(o.ctx, s, read)
		return err
	})
	return found, err
}

// warnIfDown warns if the environment's background process does not run, since changes then have no effect yet on
// machine 0. Agents of other machines have processes of their own. A command that opens the environment several
// times warns once. warnIfDown prints nothing if it cannot find out whether the process runs.
func (o *operator) warnIfDown(e home.Environment) {
	if o.hasWarned {
		return
	}

	if pid, err := o.parts.Processes.Running(e.MachineDir("0")); pid == 0 && err == nil {
		o.hasWarned = true
		o.note(
			"warning: the background process of model %q is not running, so machine 0 and its provisioner will not act on changes",
			e.Name,
		)
		o.note("hint: start it again with: juju start -e %s", e.Name)
	}
}

// warnOfStore prints warnings about faults of etcd's servers. It does nothing for a store in a file. It ignores a
// store that cannot be opened, since the commands that use the store report that.
func (o *operator) warnOfStore(url string) {
	if !strings.HasPrefix(url, "etcd") {
		return
	}

	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	defer cancel()

	s, err := state.Open(ctx, url)
	if err != nil {
		return
	}
	defer s.Close()
	for _, warning := range s.Advisories(ctx) {
		o.note("warning: %s", warning)
	}
}

// hasEnvironment reports whether an environment called name exists. It returns false if the environments cannot
// be listed.
func (o *operator) hasEnvironment(name string) bool {
	names, _ := o.home.Names()
	return slices.Contains(names, name)
}
