package juju

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
)

type execCmd struct {
	Units      []string      `arg:"" optional:"" name:"unit" help:"The units; APPLICATION/leader is the leader."`
	Unit       []string      `short:"u" placeholder:"UNIT" help:"Run on UNIT; separate several with commas."`
	Service    []string      `short:"a" aliases:"application,app" placeholder:"APPLICATION" help:"Run on all units of APPLICATION; separate several with commas."`
	All        bool          `help:"Run on all units of the model."`
	Machine    []string      `placeholder:"ID" help:"Run on machine ID, in its directory and without an agent; separate several with commas."`
	Timeout    time.Duration `aliases:"wait,max-wait" default:"5m" placeholder:"TIME" help:"End a command that has not ended after this time, as in 90s. 0 waits forever. Default 5m."`
	Format     string        `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"Print as plain, yaml or json; default plain."`
	outputFlag `embed:""`

	Background bool `help:"Only queue the command, and print the ids; juju show-operation ID shows the result."`
	In         bool `short:"i" name:"stdin" aliases:"interactive" hidden:"" help:"Run the command with stdin, as juju ssh does, without waiting for the unit's hooks."`
	Terminal   bool `short:"t" name:"tty" hidden:"" help:"The same."`

	Detach  bool     `short:"d" hidden:"" help:"As --background."`
	Index   int      `hidden:"" help:"Choose a unit of the application by number, as compose does."`
	Env     []string `hidden:"" sep:"none" help:"A variable of the command, as compose has it; cutCommand takes it off."`
	Workdir string   `short:"w" hidden:"" help:"The directory that it runs in; cutCommand takes it off."`
}

// Run queues the command on the given units whose agents are not down, waits until it has ended on each, and
// prints the results. It ends commands that have not ended after --timeout. With --background it only queues
// the command, and returns an error that names the units whose agents are down.
// Run uses no agents for an interactive command and for --machine. It then runs the command as juju ssh does.
func (c execCmd) Run(o *operator) error {
	if len(o.command) == 0 {
		return console.Hint(console.Usage(errors.New("no command given")),
			"put the command behind two dashes: juju exec UNIT... -- COMMAND [ARG...]",
			"an action of a charm is run with: juju run UNIT ACTION")
	}
	if c.wantsShell(o) {
		return c.runOverSSH(o)
	}

	hasUnits := len(c.Units)+len(c.Unit)+len(c.Service) > 0 || c.All
	if len(c.Machine) > 0 && !hasUnits {
		return c.runOnMachines(o)
	}
	if len(c.Machine) > 0 {
		return console.Usage(errors.New("--machine cannot be used with units: a command for a unit runs on the unit's own machine"))
	}

	return o.openChosen(func(s *state.State) error {
		targets, err := c.findTargets(o, s)
		if err != nil && c.Format == "json" {
			// Programs written for Juju look for the prefix that taskError adds.
			return taskError(err)
		}
		if err != nil {
			return err
		}

		queued, err := enqueueCommand(o, s, targets.units, asShellRuns(o.command))
		if err != nil {
			return err
		}
		if c.Background || c.Detach {
			// A command has no parameters to warn about, so the request is empty.
			if err := (actionRequest{}).reportQueued(o, s, queued); err != nil {
				return err
			}
			return joinErrors(targets.down)
		}

		w := newActionWaiter(o, s, queued)
		reason, err := w.waitOrCancel(c.Timeout)
		if err != nil {
			return err
		}

		return runResult{o: o, actions: w.actions, cancelReason: reason, down: targets.down}.print(c.Format)
	})
}

// wantsShell reports whether the command is interactive: with -i or -t, or a shell without arguments if stdin is a
// terminal.
func (c execCmd) wantsShell(o *operator) bool {
	shells := []string{"sh", "bash", "dash", "ash", "zsh", "fish", "/bin/sh", "/bin/bash"}
	isBareShell := len(o.command) == 1 && slices.Contains(shells, o.command[0])
	return c.In || c.Terminal || isBareShell && console.IsTerminal(o.streams.In)
}

// runOverSSH runs an interactive command as juju ssh does, since a command that the unit's agent runs has no stdin.
func (c execCmd) runOverSSH(o *operator) error {
	var targets []string
	for _, word := range slices.Concat(c.Units, c.Unit) {
		targets = append(targets, unitOfPod(word))
	}
	targets = append(targets, c.Machine...)

	if len(targets) != 1 || len(c.Service) > 0 || c.All {
		return console.Hint(console.Usage(errors.New("cannot open a shell: want exactly one unit or machine")),
			"juju ssh UNIT "+quoteShellWords(o.command))
	}
	target := targets[0]
	if len(c.Machine) == 0 && !isUnitWord(target) {
		return notUnitError(target, quoteShellWords(o.command))
	}

	o.note("note: %s runs as with juju ssh %s: at once, and without hook tools",
		o.command[0], target)
	// juju ssh gives a single word to the shell unquoted, so quote several words into one.
	line := o.command
	if len(line) > 1 {
		line = []string{quoteShellWords(line)}
	}
	return sshCmd{Target: target, Command: line}.Run(o)
}

// refuseUnit returns the error for a word that stands in place of a unit, and that does not have the form of
// a unit's name. command is the command to run. The error has a hint with the command line that the operator may
// have meant. If the word names no application, the hint takes the word as the first word of the command.
func (c execCmd) refuseUnit(v *state.View, word string, command []string) error {
	line := quoteShellWords(command)
	// The word is a value of -u, which in other tools is the user of the command.
	if slices.Contains(c.Unit, word) && len(c.Units) > 0 {
		return console.Hint(console.Usage(fmt.Errorf("%q is not a unit, and juju exec has no option for a user: a command runs as the user of the unit's hooks", word)),
			"juju exec "+quoteShellWords(c.Units)+" -- "+line)
	}
	if c.Index > 0 {
		// compose counts from 1, and units are counted from 0.
		return console.Hint(console.Usage(fmt.Errorf("%q is not a unit: a unit's name ends in a number", word)),
			fmt.Sprintf("juju exec %s/%d -- %s", quoteShellWords([]string{word}), c.Index-1, line))
	}

	_, err := v.Service(appOfWord(word))
	if err == nil {
		// The word names an application, so the hints are for its units.
		return notUnitError(word, line)
	}
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}

	line = quoteShellWords([]string{word}) + " " + line
	return console.Hint(console.Usage(fmt.Errorf("%q is neither a unit nor an application", word)),
		"to run on all units: juju exec --all -- "+line)
}

// appOfWord returns NAME for kubectl's deployment/NAME. It returns other words unchanged.
func appOfWord(word string) string {
	if names := readNames([]string{word}); len(names.apps) > 0 {
		return names.apps[0]
	}
	return word
}

// notUnitError returns the error for a name that is not a unit's. Its hints run the command on the units of an
// application with that name. command is quoted for a shell.
func notUnitError(name, command string) error {
	name = appOfWord(name)
	return console.Hint(console.Usage(fmt.Errorf("%q is not a unit", name)),
		fmt.Sprintf("to run on all units of an application: juju exec --application %s -- %s", quoteShellWords([]string{name}), command),
		fmt.Sprintf("to run on one of them, in a shell: juju ssh %s/leader %s", quoteShellWords([]string{name}), command))
}

// runTargets are the requested units.
type runTargets struct {
	units []string // the units on which the command runs, sorted, each once
	down  []error  // an error for each unit whose agent is down
}

// findTargets returns the units that the arguments and flags name. It returns an error if they name none, if
// one of these units does not exist, or if none of them can run the command.
func (c execCmd) findTargets(o *operator, s *state.State) (targets runTargets, err error) {
	names := append(slices.Clone(c.Units), c.Unit...)
	if len(names)+len(c.Service) == 0 && !c.All {
		return targets, console.Usage(errors.New("no unit given: give units, --application or --all"))
	}

	targets, err = state.Read(o.ctx, s, func(v *state.View) (runTargets, error) {
		units, err := c.listUnits(o, v, names)
		if err != nil {
			return runTargets{}, err
		}
		return selectReachable(v, units)
	})
	if err != nil {
		return targets, err
	}

	// The command runs on these units, even if the agents of other units are down.
	if len(targets.units) > 0 {
		return targets, nil
	}
	if len(targets.down) > 0 {
		return targets, console.Hint(joinErrors(targets.down), "nothing was run; juju status shows the units")
	}

	return targets, errors.New("there are no units")
}

// listUnits returns the units that the words name, and the units of the services that the flags select, sorted,
// each once.
func (c execCmd) listUnits(o *operator, v *state.View, words []string) (units []string, err error) {
	for _, word := range words {
		word = unitOfPod(word)
		if !isUnitWord(word) {
			return nil, c.refuseUnit(v, word, o.command)
		}
		unit, err := findUnitName(v, word)
		if err != nil {
			return nil, err
		}
		units = append(units, unit)
	}

	services := c.Service
	if c.All {
		// An empty name stands for all services.
		services = []string{""}
	}
	for _, service := range services {
		names, err := unitNames(v, service)
		if err != nil {
			return nil, err
		}
		units = append(units, names...)
	}

	charm.SortUnits(units)
	return slices.Compact(units), nil
}

// unitNames returns the names of a service's units, or of all units if service is "". It returns an error if
// the service does not exist or has no units.
func unitNames(v *state.View, service string) (names []string, err error) {
	if service != "" {
		if _, err := v.Service(service); err != nil {
			return nil, err
		}
	}

	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		names = append(names, u.Name)
	}
	if len(names) == 0 && service != "" {
		return names, fmt.Errorf("application %q has no units", service)
	}

	return names, nil
}

// selectReachable separates the units whose agents are down from all other units. On a unit whose agent is
// down, the command would run much later, or never. It returns an error if a unit does not exist.
func selectReachable(v *state.View, units []string) (targets runTargets, err error) {
	var unknown []error
	for _, name := range units {
		u, err := v.Unit(name)
		if err != nil {
			unknown = append(unknown, err)
			continue
		}

		present, err := v.IsPresent(state.UnitAgent(name))
		if err != nil {
			return targets, err
		}
		// A new unit has no charm yet, and its agent may not have started.
		unitIsNew := u.Charm == ""
		if !present && !unitIsNew {
			targets.down = append(targets.down, fmt.Errorf("cannot run on unit %q: its agent is down", name))
			continue
		}
		targets.units = append(targets.units, name)
	}

	if len(unknown) > 0 {
		return targets, console.Hint(joinErrors(unknown), "nothing was run; juju status shows the units")
	}

	return targets, nil
}

// maxEnqueueBatch is the maximum number of units in one transaction.
const maxEnqueueBatch = 20

// enqueueCommand queues the command for all units, in batches. If a batch fails, it cancels the actions of the
// earlier batches.
func enqueueCommand(o *operator, s *state.State, units, command []string) (queued []actions.Action, err error) {
	for batch := range slices.Chunk(units, maxEnqueueBatch) {
		var added []actions.Action
		err := s.Update(o.ctx, func(tx *state.Tx) error {
			// After a conflict, this function runs again.
			added = nil
			for _, unit := range batch {
				a, err := actions.Add(tx, actions.Action{Unit: unit, Command: command}, time.Now())
				if err != nil {
					return err
				}
				added = append(added, a)
			}

			return nil
		})
		if err != nil {
			return nil, errors.Join(err, o.cancelQueued(s, queued))
		}
		queued = append(queued, added...)
	}

	return queued, nil
}
