package juju

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

// debugLogCmd is `juju debug-log`.
type debugLogCmd struct {
	Follow bool     `short:"f" help:"Go on printing what comes."`
	Unit   []string `short:"u" sep:"none" placeholder:"UNIT" help:"Only this unit (or machine-0); may be repeated."`
	Level  string   `short:"l" placeholder:"LEVEL" help:"This level and those above: TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL."`
	Lines  *int     `short:"n" placeholder:"N" help:"The last N lines; 0 is all. Default: all, with --follow 10."`
}

// Help shows how it is used.
func (debugLogCmd) Help() string {
	return `Only the newest part of the log is kept in the environment; all that hooks print is in the unit's folder.

Examples:
  juju debug-log
  juju debug-log -f --unit wordpress/0
  juju debug-log --level WARNING -n 20`
}

// Run prints the lines by time and, with --follow, goes on until interrupted.
func (c debugLogCmd) Run(o *operator) error {
	filter := state.LogFilter{Sources: c.Unit, Level: strings.ToUpper(c.Level), Last: c.last()}
	if filter.Last < 0 {
		return console.Usage(fmt.Errorf("cannot show %d lines", filter.Last))
	}
	return o.open(func(s *state.State) error {
		t := tail{o: o, state: s, filter: filter, read: map[string]int64{}, colour: console.Coloured(o.streams.Out)}
		if err := t.print(); err != nil || !c.Follow {
			return err
		}
		t.filter.Last = 0
		return t.follow()
	})
}

// last is how many lines are wanted; 0 is all.
func (c debugLogCmd) last() int {
	switch {
	case c.Lines != nil:
		return *c.Lines
	case c.Follow:
		return 10
	}
	return 0
}

// tail prints a log and what comes after.
type tail struct {
	o        *operator
	state    *state.State
	filter   state.LogFilter
	read     map[string]int64 // the last line printed, by source
	revision int64
	colour   bool
}

// print prints the lines that were not printed before.
func (t *tail) print() error {
	t.filter.After = t.read
	var lines []state.LogLine
	err := t.state.View(t.o.ctx, func(v *state.View) (err error) {
		if lines, err = v.Logs(t.filter); err != nil {
			return err
		}
		t.revision, err = v.Revision()
		return err
	})
	if err != nil {
		return err
	}
	for _, l := range lines {
		t.read[l.Source] = max(t.read[l.Source], l.Seq)
		fmt.Fprintln(t.o.streams.Out, t.line(l))
	}
	return nil
}

// line is one line as it is printed.
func (t *tail) line(l state.LogLine) string {
	text := fmt.Sprintf("%s %s %s %s", l.Time.Local().Format(time.DateTime+".000"), l.Source, l.Level, console.Plain(hookPrefix(l.Hook)+l.Message))
	switch {
	case !t.colour:
		return text
	case l.Level == "ERROR" || l.Level == "CRITICAL":
		return console.Paint(console.Red, text)
	case l.Level == "WARNING":
		return console.Paint(console.Yellow, text)
	}
	return text
}

func hookPrefix(hook string) string {
	if hook == "" {
		return ""
	}
	return hook + ": "
}

// follow prints what comes until the operator has seen enough.
func (t *tail) follow() error {
	for t.o.ctx.Err() == nil {
		if err := t.await(); err != nil {
			return err
		}
		if err := t.print(); err != nil && t.o.ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// await returns when a log has grown, or the operator has interrupted.
func (t *tail) await() error {
	w, err := t.state.Watch(t.o.ctx, t.revision, state.WatchLogs(t.filter.Sources...))
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Next(t.o.ctx)
	if t.o.ctx.Err() != nil || errors.Is(err, state.ErrCompacted) {
		return nil
	}
	return err
}
