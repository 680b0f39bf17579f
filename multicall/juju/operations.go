package juju

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/text"
)

type operationsCmd struct {
	Which      []string `arg:"" optional:"" name:"id or unit" help:"Show only these actions, or only actions of these units."`
	Apps       []string `aliases:"applications" placeholder:"APPLICATION,..." help:"Show only actions of units of these applications."`
	Units      []string `placeholder:"UNIT,..." help:"Show only actions of these units."`
	Names      []string `name:"actions" aliases:"name" placeholder:"ACTION,..." help:"Show only actions of these names."`
	Status     []string `placeholder:"STATUS,..." help:"Show only actions with this status: pending, running, completed, failed, cancelled."`
	Limit      int      `default:"0" placeholder:"N" help:"Show only the first N; 0 shows all."`
	Offset     int      `default:"0" placeholder:"N" help:"Skip the first N."`
	Format     string   `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// Run prints the actions that the arguments and options select, in the order of their ids.
func (c operationsCmd) Run(o *operator) error {
	if c.Limit < 0 || c.Offset < 0 {
		return console.Usage(errors.New("cannot list actions: --limit and --offset must not be negative"))
	}

	// --units selects actions as a unit among the arguments does.
	c.Which = append(c.Which, c.Units...)
	chosen, err := readChosen(o, c.readActions)
	if err != nil {
		return err
	}

	chosen = slices.DeleteFunc(chosen, func(a actions.Action) bool { return !c.wants(a) })
	chosen = chosen[min(c.Offset, len(chosen)):]
	if c.Limit > 0 {
		chosen = chosen[:min(c.Limit, len(chosen))]
	}

	docs := make([]actionDoc, 0, len(chosen))
	t := console.NewTable("ID", "UNIT", "ACTION", "STATUS", "ENQUEUED", "TOOK", "MESSAGE")
	for _, a := range chosen {
		// The list leaves out the actions' output, which can be long.
		docs = append(docs, newActionDoc(a, actions.Output{}))
		t.Add(actionColour(a.Status), strconv.Itoa(a.ID), a.Unit, actionTitle(a), string(a.Status),
			a.Enqueued.Local().Format(time.DateTime), actionTook(a), text.FirstLine(a.Message))
	}

	return o.printTable(c.Format, docs, t)
}

// wants reports whether --apps, --actions and --status select the action. An option that is not given selects
// every action.
func (c operationsCmd) wants(a actions.Action) bool {
	app, _, _ := strings.Cut(a.Unit, "/")
	selects := func(option []string, word string) bool {
		return len(option) == 0 || slices.Contains(option, word)
	}

	return selects(c.Apps, app) && selects(c.Names, a.Name) && selects(c.Status, string(a.Status))
}

// readActions returns the actions that c.Which names by their ids or units, or all actions if c.Which is empty.
// The actions are sorted by id, and each is returned once.
func (c operationsCmd) readActions(v *state.View) ([]actions.Action, error) {
	if len(c.Which) == 0 {
		return actions.List(v, "")
	}

	var found []actions.Action
	for _, word := range c.Which {
		named, err := readActionsOf(v, word)
		if err != nil {
			return nil, err
		}
		found = append(found, named...)
	}

	slices.SortFunc(found, func(a, b actions.Action) int { return a.ID - b.ID })
	return slices.CompactFunc(found, func(a, b actions.Action) bool { return a.ID == b.ID }), nil
}

// readActionsOf returns the action whose id is word, or all actions of the unit whose name is word.
func readActionsOf(v *state.View, word string) ([]actions.Action, error) {
	if id, err := strconv.Atoi(word); err == nil {
		action, err := actions.Get(v, id)
		if err != nil {
			return nil, err
		}
		return []actions.Action{action}, nil
	}

	if !charm.IsUnit(word) {
		return nil, console.Usage(fmt.Errorf("%q is neither an action's id nor a unit", word))
	}
	if _, err := v.Unit(word); err != nil {
		return nil, err
	}
	return actions.List(v, word)
}

// actionTitle returns the action's name or, for a command, "run: " and the beginning of its command line.
func actionTitle(a actions.Action) string {
	if !a.IsCommand() {
		return a.Name
	}

	title := []rune(text.FirstLine("run: " + strings.Join(a.Command, " ")))
	if len(title) > 40 {
		// With the three dots, the title has 40 characters.
		return string(title[:37]) + "..."
	}

	return string(title)
}

// actionTook returns how long the action has run, or "" if it has not begun.
func actionTook(a actions.Action) string {
	switch {
	case a.Started.IsZero():
		return ""
	case a.Completed.IsZero():
		return formatTook(time.Since(a.Started)) + ", so far"
	}
	return formatTook(a.Completed.Sub(a.Started))
}

// actionColour returns the colour of an action's row: red if the action has failed, and none otherwise.
func actionColour(status actions.Status) console.Colour {
	if status == actions.Failed {
		return console.Red
	}
	return ""
}
