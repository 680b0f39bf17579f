package juju

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/logs"
	"bijou/state/status"
)

type hookHistoryCmd struct {
	Unit    string `arg:"" help:"The unit."`
	Count   int    `short:"n" default:"50" help:"Show at most the last N."`
	Format  string `enum:"tabular,yaml,json" default:"tabular" help:"Print in one of these formats: ${enum}."`
	Secrets bool   `name:"show-secrets" help:"Also show passwords and other secrets that hooks wrote."`
}

// Run prints the last hooks of the unit, with the oldest first and the running hook, if there is one, last.
func (c hookHistoryCmd) Run(o *operator) error {
	runs, running, err := c.readHooks(o)
	if err != nil {
		return err
	}
	return o.printTable(c.Format, status.NewHookRuns(runs, running), historyTable(runs, running))
}

// readHooks reads the last c.Count hooks that a unit has run, with the oldest first. It hides secrets unless
// c.Secrets is true. running is the running hook, or nil.
func (c hookHistoryCmd) readHooks(o *operator) (runs []state.HookRun, running *state.RunningHook, err error) {
	if c.Count < 1 {
		return nil, nil, console.Usage(fmt.Errorf("-n must be at least 1, not %d", c.Count))
	}

	err = o.view(func(v *state.View) (err error) {
		if err := c.checkUnit(v); err != nil {
			return err
		}
		runs, err = v.HookRuns(c.Unit)
		if err != nil {
			return err
		}
		runs = runs[max(0, len(runs)-c.Count):]

		running, err = v.Running(c.Unit)
		return err
	})
	if err != nil {
		return nil, nil, err
	}

	if !c.Secrets {
		status.HideHookRuns(runs)
	}
	return runs, running, nil
}

// checkUnit returns an error if the unit does not exist. As long as the unit's log is kept, the error says
// that the unit was removed.
func (c hookHistoryCmd) checkUnit(v *state.View) error {
	_, err := v.Unit(c.Unit)
	if err == nil {
		return nil
	}
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}

	// Without lines, the unit may never have existed.
	lines, logErr := logs.Read(v, logs.Filter{Sources: []string{c.Unit}, Last: 1})
	if logErr != nil || len(lines) == 0 {
		return errors.Join(err, logErr)
	}

	return console.Hint(fmt.Errorf("unit %q was removed, with the history of its hooks", c.Unit),
		"its log still exists: juju debug-log --unit "+c.Unit)
}

// historyTable returns a table of the hooks. Below each hook it has a row for each recorded setting that the
// hook wrote, and a row with the number of further ones. The running hook, if there is one, comes last.
func historyTable(runs []state.HookRun, running *state.RunningHook) *console.Table {
	t := console.NewTable("N", "STARTED", "TOOK", "HOOK", "REMOTE", "EXIT", "MESSAGE")

	for _, r := range runs {
		colour := console.Plain
		exit := strconv.Itoa(r.Exit)
		if r.Failure != "" {
			colour = console.Red
		}
		if r.Exit < 0 {
			// The hook did not exit by itself.
			exit = "-"
		}

		took := r.Ended.Sub(r.Started).Round(time.Millisecond).String()
		n := strconv.FormatInt(status.NumberOf(r), 10)
		t.Add(colour, n, r.Started.Local().Format(time.DateTime), took, r.Hook, r.Remote, exit, r.Failure)
		for _, change := range r.Changes {
			addBelow(t, change)
		}
		if r.More > 0 {
			addBelow(t, fmt.Sprintf("and %d more", r.More))
		}
	}

	if r := running; r != nil {
		// HeldBy is meant for the end of a sentence, so it begins with a comma.
		t.Add(console.Yellow, "-", r.Since.Local().Format(time.DateTime), "running", r.Name, r.Remote, "-",
			strings.TrimPrefix(r.HeldBy(), ", "))
	}

	return t
}

// addBelow adds a row to historyTable's table whose only cell is the message.
func addBelow(t *console.Table, message string) {
	t.Add(console.Plain, "", "", "", "", "", "", message)
}
