package juju

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/durable"
	"bijou/state/sanitize"
	"bijou/state/wrap"
)

// operator is one call of juju.
type operator struct {
	ctx     context.Context
	streams console.Streams
	home    home.Home
	name    string // the environment's, as given by -e
	parts   Parts
	args    []string // how it was called, without its name
	command []string // of the command line: what stands behind the two dashes of `juju run`

	affected []string // what --wait waits for
	until    string   // to be what
}

func quoteShellWords(words []string) string {
	plain := regexp.MustCompile(`^[\w./:=,@%+-]+$`)
	var quoted []string
	for _, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}

func formatCount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// note prints to stderr: stdout is for data.
func (o *operator) note(format string, args ...any) {
	fmt.Fprintf(o.streams.Err, format+"\n", args...)
}

// encode prints data as YAML, or as one line of JSON if that is the format.
func (o *operator) encode(format string, data any) error {
	var text []byte
	var err error
	if format == "json" {
		text, err = json.Marshal(data)
		text = append([]byte(sanitize.EscapeJSON(string(text))), '\n')
	} else {
		text, err = sanitize.MarshalYAML(data)
	}
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	_, err = o.streams.Out.Write(text)
	return err
}

// printTable prints the table, or the data in another format than tabular.
func (o *operator) printTable(format string, data any, table *console.Table) error {
	if format != "tabular" {
		return o.encode(format, data)
	}
	return table.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

// openChosen opens the chosen environment's state for f, and warns if no agent is there to
// act on what f changes.
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

// openTimeout is short, since somebody sits there.
const openTimeout = 5 * time.Second

// openState refuses an environment whose folder is a copy.
func (o *operator) openState(e home.Environment, f func(s *state.State) error) error {
	return o.openUnchecked(e, func(s *state.State) error {
		if err := o.refuseCopy(e, s); err != nil {
			return err
		}
		return f(s)
	})
}

func (o *operator) openUnchecked(e home.Environment, f func(s *state.State) error) error {
	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	s, err := state.Open(ctx, e.State)
	cancel()
	if err != nil {
		return err
	}
	err = f(s)
	return errors.Join(err, s.Close())
}

func (o *operator) update(f func(tx *state.Tx) error) error {
	return o.openChosen(func(s *state.State) error { return s.Update(o.ctx, f) })
}

func (o *operator) view(f func(v *state.View) error) error {
	return o.openChosen(func(s *state.State) error { return s.View(o.ctx, f) })
}

// readChosen returns what read finds in one view of the chosen environment.
func readChosen[T any](o *operator, read func(v *state.View) (T, error)) (found T, err error) {
	err = o.openChosen(func(s *state.State) (err error) {
		found, err = state.Read(o.ctx, s, read)
		return err
	})
	return found, err
}

func (o *operator) warnIfDown(e home.Environment) {
	if pid, err := o.parts.Agents.Running(e.MachineDir("0")); pid == 0 && err == nil {
		o.note("warning: the background process of environment %q is not running: nothing will happen until it does", e.Name)
		o.note("hint: start it again with: juju start -e %s", e.Name)
	}
}

// warnOfStore warns of what the servers of a store in etcd should not be used for. It never fails: a store
// that does not answer is somebody else's to report.
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

func withHint(err error) error {
	if replaced, ok := errors.AsType[*state.Replaced](err); ok {
		return hintReplaced(err, replaced)
	}
	switch {
	case errors.Is(err, home.ErrNoEnvironment):
		return console.Hint(err, "juju bootstrap makes one; juju environments lists those there are")
	case errors.Is(err, home.ErrBusy):
		return console.Hint(err, "wait until it has finished, then look at: juju environments")
	case errors.Is(err, context.Canceled):
		return console.Hint(err, "it was interrupted; look at juju status before you repeat it")
	case errors.Is(err, state.ErrAway):
		return console.Hint(err, "see that the environment's store can be reached and nobody keeps it locked; look at juju status before you repeat a change")
	case errors.Is(err, state.ErrMoved):
		return console.Hint(err, "a migration was cut off: repeat juju migrate-state with that URL; elsewhere than where it began, take environment.yaml from there")
	case errors.Is(err, state.ErrNoStore), errors.Is(err, state.ErrStoreGone):
		return console.Hint(err, "the environment's store is gone; juju destroy-environment --force removes what is left")
	}
	return err
}

// hintReplaced says the two ways on from a store that was replaced under its agents.
func hintReplaced(err error, r *state.Replaced) error {
	return console.Hint(err,
		"nothing is written any more and its agents end; see docs/backup.md, \"A state file that was replaced\"",
		"to put a backup in its place: juju stop; juju restore --replace FILE",
		"to go on with what the file holds now: juju stop; rm -f "+strings.Join(r.Remove, " ")+"; juju start")
}

// writeOutput writes the data to where -o says. A regular file is replaced by rename, so
// that no reader ever sees half of it; anything else (a pipe, a device) is written to. The
// name of the process's own stdout or stderr means that stream.
func writeOutput(o *operator, path string, data []byte) error {
	return wrap.Error(replaceOrWrite(o, path, data), "cannot write %q", path)
}

func replaceOrWrite(o *operator, path string, data []byte) error {
	info, err := os.Stat(path)
	for _, stream := range []any{o.streams.Out, o.streams.Err} {
		if f, isFile := stream.(*os.File); isFile && err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(own, info) {
				_, err := f.Write(data)
				return err
			}
		}
	}
	if err == nil && !info.Mode().IsRegular() {
		return writeInPlace(path, data)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays, what it leads to is replaced
	}
	return durable.WriteFile(path, data, 0o666)
}

func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

const (
	// settleInterval bounds reads where the state is printed: a flood of changes costs ten
	// a second, not one each.
	settleInterval    = 100 * time.Millisecond
	awayRetryInterval = time.Second
)

// follower prints what a view of the state returns, again after each change.
type follower struct {
	o      *operator
	state  *state.State
	scopes []state.Scope // what is watched for changes
	// read returns a function that prints what it has read, once the view is over.
	read func(v *state.View) (print func() error, err error)

	settleInterval time.Duration // how long a change may draw others after it
	// pollTimeout, if set, is how long it may be until the next read without a change.
	pollTimeout func() time.Duration

	shown bool // something was shown: errors from now on may pass
	away  bool // the store cannot be reached
}

// follow blocks until ctx is done. It outlasts a store that goes away, and notes that once.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		revision, err := f.showOnce(ctx)
		if err == nil {
			f.noteAway(nil)
			err = f.awaitChange(ctx, revision)
		}
		if ctx.Err() != nil || console.IsUnread(err) {
			break
		}
		pause := f.settleInterval
		if err != nil {
			if !f.shown || !errors.Is(err, state.ErrAway) { // waiting heals nothing else
				return err
			}
			f.noteAway(err)
			pause = awayRetryInterval
		}
		_ = backoff.Sleep(ctx, pause)
	}
	return nil
}

func (f *follower) showOnce(ctx context.Context) (revision int64, err error) {
	var print func() error
	err = f.state.View(ctx, func(v *state.View) (err error) {
		if print, err = f.read(v); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := print(); err != nil {
		return 0, err
	}
	f.shown = true
	return revision, nil
}

// awaitChange blocks until something in the scopes has changed after the revision, or it is
// time to read again.
func (f *follower) awaitChange(ctx context.Context, revision int64) error {
	if f.pollTimeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.pollTimeout())
		defer cancel()
	}
	err := f.state.Await(ctx, revision, f.scopes...)
	if f.pollTimeout != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (f *follower) noteAway(err error) {
	switch {
	case err != nil && !f.away:
		f.o.note("warning: %v; waiting until it can be read again", err)
	case err == nil && f.away:
		f.o.note("going on")
	}
	f.away = err != nil
}
