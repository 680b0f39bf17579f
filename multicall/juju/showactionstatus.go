package juju

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/text"
)

type showActionStatusCmd struct {
	Which  []string `arg:"" optional:"" name:"id or unit" help:"Only these actions, or those of these units."`
	Format string   `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

// Run prints one line an action.
func (c showActionStatusCmd) Run(o *operator) error {
	actions, err := readChosen(o, c.readActions)
	if err != nil {
		return err
	}

	docs := make([]actionDoc, 0, len(actions))
	t := console.NewTable("ID", "UNIT", "ACTION", "STATUS", "ENQUEUED", "TOOK", "MESSAGE")
	for _, a := range actions {
		docs = append(docs, newActionDoc(a, state.Output{}))
		t.Add(actionColour(a.Status), strconv.Itoa(a.ID), a.Unit, actionTitle(a), string(a.Status),
			a.Enqueued.Local().Format(time.DateTime), actionTook(a), text.FirstLine(a.Message))
	}

	return o.printTable(c.Format, docs, t)
}

func (c showActionStatusCmd) readActions(v *state.View) (all []state.Action, err error) {
	if len(c.Which) == 0 {
		return v.Actions("")
	}

	for _, word := range c.Which {
		var some []state.Action
		id, notANumber := strconv.Atoi(word)
		switch {
		case notANumber == nil:
			some = make([]state.Action, 1)
			some[0], err = v.Action(id)
		case charm.IsUnit(word):
			if _, err = v.Unit(word); err == nil {
				some, err = v.Actions(word)
			}
		default:
			err = console.Usage(fmt.Errorf("%q is neither an action's id nor a unit", word))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}

	slices.SortFunc(all, func(a, b state.Action) int { return a.ID - b.ID })
	return slices.CompactFunc(all, func(a, b state.Action) bool { return a.ID == b.ID }), nil
}

func actionTitle(a state.Action) string {
	if !a.IsCommand() {
		return a.Name
	}

	title := []rune(text.FirstLine("run: " + strings.Join(a.Command, " ")))
	if len(title) > 40 {
		return string(title[:37]) + "..."
	}

	return string(title)
}

// actionTook returns how long it has run; "" for one that has not begun.
func actionTook(a state.Action) string {
	switch {
	case a.Started.IsZero():
		return ""
	case a.Completed.IsZero():
		return formatTook(time.Since(a.Started)) + ", so far"
	}
	return formatTook(a.Completed.Sub(a.Started))
}

func actionColour(status state.ActionStatus) console.Colour {
	if status == state.ActionFailed {
		return console.Red
	}
	return ""
}
