package juju

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

type execCmd struct {
	Units   []string      `arg:"" optional:"" name:"unit" help:"The units; SERVICE/leader is the one that leads."`
	Unit    []string      `short:"u" placeholder:"UNIT" help:"A unit, too; several with commas."`
	Service []string      `aliases:"application" placeholder:"SERVICE" help:"All units of a service; several with commas."`
	All     bool          `help:"All units of the environment."`
	Machine string        `placeholder:"ID" help:"On a machine instead, in its folder and without an agent."`
	Timeout time.Duration `aliases:"wait" default:"5m" placeholder:"TIME" help:"How long to wait, as in 90s; a command that has not ended by then is ended. 0: without end. Default 5m."`
	Format  string        `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"plain, yaml or json; default plain."`
}

type runCmd struct {
	execCmd
	Params string `placeholder:"FILE" help:"YAML file with an action's parameters; those of the command line win."`
}

// Run runs an action if there is no command.
func (c runCmd) Run(o *operator) error {
	if len(o.command) > 0 || !slices.ContainsFunc(c.Units, func(w string) bool { return !isUnitWord(w) }) {
		return c.execCmd.Run(o)
	}
	if c.Format == "json" {
		c.Format = taskFormat
	}
	return runActionCmd{Words: c.Units, Params: c.Params, Wait: waitFlag{true, c.Timeout}, Format: c.Format}.Run(o)
}

func isUnitWord(word string) bool { return charm.IsUnit(word) || strings.HasSuffix(word, leaderSuffix) }

const leaderSuffix = "/leader"

// findUnitName returns the unit that leads for SERVICE/leader.
func findUnitName(v *state.View, word string) (string, error) {
	service, ok := strings.CutSuffix(word, leaderSuffix)
	if !ok {
		return word, nil
	}
	unit, err := v.Leader(service)
	if err == nil && unit == "" {
		err = fmt.Errorf("there is no service %q, or none of its units leads just now", service)
	}
	return unit, err
}

// cancelTimeout is longer than an agent takes to kill what it was told to end.
const cancelTimeout = 15 * time.Second

// Run queues the command on all units, waits for its end, and prints what came of it.
func (c execCmd) Run(o *operator) error {
	switch {
	case len(o.command) == 0:
		return console.Hint(console.Usage(errors.New("it is not said what to run")),
			"put the command behind two dashes: juju exec UNIT... -- COMMAND [ARG...]",
			"an action of a charm is run with: juju run UNIT ACTION")
	case c.Machine != "" && len(c.Units)+len(c.Unit)+len(c.Service) == 0 && !c.All:
		return c.runOnMachine(o)
	case c.Machine != "":
		return console.Usage(errors.New("--machine cannot be used with units: they have machines of their own"))
	}
	return o.openChosen(func(s *state.State) error {
		to, err := c.findTargets(o.ctx, s)
		if err != nil {
			if c.Format == "json" {
				err = taskError(err, false)
			}
			return err
		}
		actions, err := enqueueCommand(o, s, to.units, o.command)
		if err != nil {
			return err
		}
		w := newActionWaiter(o, s, actions)
		reason, err := w.waitOrCancel(c.Timeout)
		if err != nil {
			return err
		}
		return runResult{o: o, actions: w.actions, cancelReason: reason, down: to.down}.print(c.Format)
	})
}

// runTargets are the units to run on, sorted and without repetitions, and why others that
// were asked for are not among them.
type runTargets struct {
	units []string
	down  []error
}

func (c execCmd) findTargets(ctx context.Context, s *state.State) (to runTargets, err error) {
	names := append(slices.Clone(c.Units), c.Unit...)
	if len(names)+len(c.Service) == 0 && !c.All {
		return to, console.Usage(errors.New("it is not said where to run: give units, --service or --all"))
	}
	err = s.View(ctx, func(v *state.View) (err error) {
		var units []string
		for _, word := range names {
			unit, err := findUnitName(v, word)
			if err != nil {
				return err
			}
			units = append(units, unit)
		}
		services := c.Service
		if c.All {
			services = []string{""} // the units of all
		}
		for _, service := range services {
			of, err := unitNames(v, service)
			if err != nil {
				return err
			}
			units = append(units, of...)
		}
		charm.SortUnits(units)
		to, err = selectReachable(v, slices.Compact(units))
		return err
	})
	switch {
	case err != nil:
		return to, err
	case len(to.units) > 0:
		return to, nil
	case len(to.down) > 0:
		return to, console.Hint(joinErrors(to.down), "nothing was run; juju status shows the units")
	}
	return to, errors.New("there are no units")
}

func unitNames(v *state.View, service string) (names []string, err error) {
	if service != "" {
		if _, err := v.Service(service); err != nil {
			return nil, err
		}
	}
	units, err := v.Units(service)
	for _, u := range units {
		names = append(names, u.Name)
	}
	if err == nil && len(names) == 0 && service != "" {
		err = fmt.Errorf("service %q has no units", service)
	}
	return names, err
}

// selectReachable keeps units whose agents are present, or have yet to come. Where an
// agent is down nothing would run, or much later.
func selectReachable(v *state.View, units []string) (to runTargets, err error) {
	var unknown []error
	for _, name := range units {
		u, err := v.Unit(name)
		if err != nil {
			unknown = append(unknown, err)
			continue
		}
		present, err := v.IsPresent(state.UnitAgent(name))
		if err != nil {
			return to, err
		}
		if !present && u.Charm != "" {
			to.down = append(to.down, fmt.Errorf("cannot run on unit %q: its agent is down", name))
			continue
		}
		to.units = append(to.units, name)
	}
	if len(unknown) > 0 {
		return to, console.Hint(joinErrors(unknown), "nothing was run; juju status shows the units")
	}
	return to, nil
}

// joinErrors gives each error an `error:` line of its own; nil if there is none.
func joinErrors(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return errors.New(strings.Join(lines, "\nerror: "))
}

// maxEnqueueBatch is the number of units in one transaction.
const maxEnqueueBatch = 20

func enqueueCommand(o *operator, s *state.State, units, command []string) (all []state.Action, err error) {
	for batch := range slices.Chunk(units, maxEnqueueBatch) {
		var added []state.Action
		err := s.Update(o.ctx, func(tx *state.Tx) error {
			added = nil
			for _, unit := range batch {
				a, err := tx.AddAction(state.Action{Unit: unit, Command: command}, time.Now())
				if err != nil {
					return err
				}
				added = append(added, a)
			}
			return nil
		})
		if err != nil {
			return nil, errors.Join(err, o.cancelQueued(s, all))
		}
		all = append(all, added...)
	}
	return all, nil
}

// cancelQueued cancels what was queued before a failure, be that an interrupt.
func (o *operator) cancelQueued(s *state.State, actions []state.Action) error {
	ctx, cancel := o.cleanupContext()
	defer cancel()
	return cancelActions(ctx, s, actions)
}

func cancelActions(ctx context.Context, s *state.State, actions []state.Action) error {
	var errs []error
	for _, a := range actions {
		err := s.Update(ctx, func(tx *state.Tx) error { return tx.CancelAction(a.ID, time.Now()) })
		if !errors.Is(err, state.ErrInUse) && !errors.Is(err, state.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// waitOrCancel cancels what has not ended after the time-out (0: without end), or when the
// operator interrupts; reason says which.
func (w *actionWaiter) waitOrCancel(timeout time.Duration) (reason string, err error) {
	ctx, cancel := withTimeout(w.o.ctx, timeout)
	defer cancel()
	err = w.wait(ctx)
	if err != nil && ctx.Err() == nil {
		return "", err
	}
	var left []state.Action
	for _, a := range w.actions {
		if !a.action.Ended() {
			left = append(left, a.action)
		}
	}
	if len(left) == 0 {
		return "", nil
	}
	if ctx.Err() != nil {
		reason = fmt.Sprintf("it had not ended after %s", timeout)
	}
	if w.o.ctx.Err() != nil {
		reason = "interrupted"
	}
	return reason, w.cancelRemaining(left)
}

func (w *actionWaiter) cancelRemaining(left []state.Action) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.o.ctx), cancelTimeout)
	defer cancel()
	if err := cancelActions(ctx, w.state, left); err != nil {
		return err
	}
	if err := w.wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
