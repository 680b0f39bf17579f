package juju

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
)

type runActionCmd struct {
	Words      []string `arg:"" name:"unit action key=value" help:"Units, the action, and its parameters."`
	Params     string   `placeholder:"FILE" help:"Read parameters from this YAML file; those on the command line override."`
	StringArgs bool     `help:"Treat all values of parameters as text."`
	Wait       waitFlag `placeholder:"TIME" help:"Wait for the action to end, and show the results; --wait=30s waits at most that long."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json, with --wait; default yaml."`
}

// Run queues the action on each unit. With --wait, it waits for the actions to end, and prints their results.
// Otherwise it prints their ids.
func (c runActionCmd) Run(o *operator) error {
	call, err := c.parseWords()
	if err != nil {
		return console.Hint(console.Usage(err), "as in: juju run-action mysql/0 backup filename=dump.gz")
	}

	if c.Params != "" {
		call.file, err = readParams(c.Params)
		if err != nil {
			return console.Usage(err)
		}
	}

	return o.openChosen(func(s *state.State) error {
		queued, err := call.enqueue(o, s)
		if err != nil {
			if c.Format == taskFormat {
				// Programs written for Juju look for the prefix that taskError adds.
				err = taskError(err)
			}
			return err
		}

		if !c.Wait.set {
			return call.reportQueued(o, s, queued)
		}

		return awaitActions(o, s, queued, c.Wait.timeout, c.Format)
	})
}

// actionRequest is an action to run, as the command line names it.
type actionRequest struct {
	units  []string
	action string
	pairs  []string       // the parameters of the command line, each KEY=VALUE
	texts  bool           // treat the values of pairs as text
	file   map[string]any // the parameters of the file
}

// parseWords splits the words UNIT... ACTION [KEY=VALUE...]. It returns an error if a unit or the action is
// missing, or if the action's name is invalid.
func (c runActionCmd) parseWords() (call actionRequest, err error) {
	i := slices.IndexFunc(c.Words, func(w string) bool { return !isUnitWord(w) })
	switch {
	case i == 0:
		return call, fmt.Errorf("%q is not a unit's name", c.Words[0])
	case i < 0:
		return call, errors.New("no action given")
	}

	call = actionRequest{units: c.Words[:i], action: c.Words[i], pairs: c.Words[i+1:], texts: c.StringArgs}
	return call, charm.CheckAction(call.action)
}

// readParams reads an action's parameters from a YAML file.
func readParams(path string) (map[string]any, error) {
	data, err := readFile(path, actions.MaxText)
	if err != nil {
		return nil, fmt.Errorf("cannot read parameters: %w", err)
	}

	params, err := charm.ParseParameters(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read parameters from %q: %w", path, err)
	}

	return params, nil
}

// enqueue queues the action once on each unit, or on none, and returns the queued actions.
func (call actionRequest) enqueue(o *operator, s *state.State) (queued []actions.Action, err error) {
	err = s.Update(o.ctx, func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		queued = nil
		seen := map[string]bool{}
		for _, word := range call.units {
			unit, err := findUnitName(tx.View, word)
			if err != nil {
				return err
			}
			if seen[unit] {
				continue
			}
			seen[unit] = true

			params, err := call.mergeParams(tx.View, unit)
			if err != nil {
				return err
			}

			a, err := actions.Add(tx, actions.Action{Unit: unit, Name: call.action, Parameters: params}, time.Now())
			if err != nil {
				return err
			}
			queued = append(queued, a)
		}

		return nil
	})
	// This error can also be about the unit. The hint is only for an unknown action.
	if errors.Is(err, state.ErrNotFound) && strings.Contains(err.Error(), "no action") {
		app, _, _ := strings.Cut(call.units[0], "/")
		err = console.Hint(err, "juju actions "+app+" lists them",
			"if this is a command, put it after two dashes: juju exec UNIT... -- COMMAND")
	}

	return queued, err
}

// mergeParams returns the action's parameters. Values of the command line take precedence over values of the
// file. Without --string-args, mergeParams parses the values of the command line by the schema of the unit's charm.
func (call actionRequest) mergeParams(v *state.View, unit string) (map[string]any, error) {
	declared, err := actions.Declared(v, unit)
	if err != nil {
		return nil, err
	}

	// If the charm does not have the action, actions.Add returns the error later.
	schema := declared[call.action]
	params := map[string]any{}
	maps.Copy(params, call.file)

	for _, pair := range call.pairs {
		key, text, ok := strings.Cut(pair, "=")
		path := strings.Split(key, ".")
		if !ok || slices.Contains(path, "") {
			return nil, console.Usage(fmt.Errorf("%q is not of the form key=value", pair))
		}

		// With --string-args, each value stays a text.
		var value any = text
		if !call.texts {
			value, err = schema.ParseText(path, text)
			if err != nil {
				return nil, fmt.Errorf("cannot read parameter %q: %w", key, err)
			}
		}
		params = setParam(params, path, value)
	}

	return params, nil
}

// setParam returns a copy of params with the value at the path. It also copies the dictionaries on the path,
// since all units share the dictionaries of the file. A value on the path that is not a dictionary is replaced.
func setParam(params map[string]any, path []string, value any) map[string]any {
	changed := map[string]any{}
	maps.Copy(changed, params)
	if len(path) > 1 {
		inner, _ := changed[path[0]].(map[string]any)
		value = setParam(inner, path[1:], value)
	}

	changed[path[0]] = value
	return changed
}

// reportQueued prints the ids of the queued actions, and warnings and hints about them. It always returns nil,
// since the actions are already queued.
func (call actionRequest) reportQueued(o *operator, s *state.State, queued []actions.Action) error {
	for _, a := range queued {
		fmt.Fprintln(o.streams.Out, a.ID)
	}
	call.warnQueued(o, s, queued)
	if len(queued) == 1 {
		o.note("hint: to see the action's result: juju show-operation --wait %d", queued[0].ID)
	}
	return nil
}

// warnQueued warns of absent agents, and of parameters that the first unit's charm does not declare. It ignores
// its own errors, since the actions are already queued.
func (call actionRequest) warnQueued(o *operator, s *state.State, queued []actions.Action) {
	_ = s.View(o.ctx, func(v *state.View) error {
		for _, a := range queued {
			present, err := v.IsPresent(state.UnitAgent(a.Unit))
			if err != nil {
				return err
			}

			if !present {
				o.note("warning: the agent of unit %q is away: the action waits for the agent", a.Unit)
			}
		}

		schemas, err := actions.Declared(v, queued[0].Unit)
		if err != nil {
			return err
		}

		for _, name := range schemas[call.action].Undescribed(queued[0].Parameters) {
			o.note("warning: the charm does not declare a parameter %q", name)
		}
		return nil
	})
}
