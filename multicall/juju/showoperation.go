package juju

import (
	"errors"
	"fmt"
	"strconv"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
)

type showOperationCmd struct {
	Words      []string `arg:"" name:"id" help:"The id of an action that was run; or an application and an action's name, to print its declaration."`
	Wait       waitFlag `placeholder:"TIME" help:"Wait for the action to end; --wait=30s waits at most that long."`
	Watch      bool     `help:"Wait for the action to end, without a limit."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints the action with its output and results. With --wait or --watch it first waits for the action to end.
// If the words are an application and an action's name, it prints the declaration of the action.
func (c showOperationCmd) Run(o *operator) error {
	// In Juju, --wait 0 waits without a limit. Here a --wait without a time does, and 0 is read as a word.
	if c.Wait.set && len(c.Words) == 2 && c.Words[1] == "0" {
		c.Words = c.Words[:1]
	}

	id, idErr := strconv.Atoi(c.Words[0])
	isID := idErr == nil
	switch {
	case len(c.Words) == 2 && !isID:
		return c.showSchema(o, c.Words[0], c.Words[1])
	case len(c.Words) > 1 || !isID:
		return console.Hint(console.Usage(errors.New("cannot show an action: want one id, or an application and an action")),
			"to list the ids: juju operations; to list the actions: juju actions APPLICATION")
	}

	return o.openChosen(func(s *state.State) error {
		// An id that does not exist must fail before the wait.
		var shown awaitedAction
		err := s.View(o.ctx, func(v *state.View) (err error) {
			shown.action, err = actions.Get(v, id)
			if err != nil {
				return err
			}

			shown.output, err = actions.ReadOutput(v, shown.action)
			return err
		})
		if err != nil {
			return err
		}
		if c.Wait.set || c.Watch {
			return awaitActions(o, s, []actions.Action{{ID: id}}, c.Wait.timeout, c.Format)
		}

		return printActions(o, []*awaitedAction{&shown}, c.Format)
	})
}

// showSchema prints a charm's declaration of one of its actions.
func (c showOperationCmd) showSchema(o *operator, service, name string) error {
	action, err := readChosen(o, func(v *state.View) (charm.Action, error) {
		ch, err := charmOf(v, service)
		if err != nil {
			return charm.Action{}, err
		}

		action, ok := ch.Actions[name]
		if !ok {
			return action, console.Hint(fmt.Errorf("the charm of application %q has no action %q", service, name),
				"juju actions "+service+" lists them")
		}
		return action, nil
	})
	if err != nil {
		return err
	}

	return o.encode(c.Format, map[string]actionInfo{name: newActionInfo(action)})
}
