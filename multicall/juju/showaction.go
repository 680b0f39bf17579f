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
)

type showActionOutputCmd struct {
	ID     int      `arg:"" help:"The action's id."`
	Wait   waitFlag `placeholder:"TIME" help:"Wait for its end; --wait=30s: not longer."`
	Format string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints the action with its output and results.
func (c showActionOutputCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		one := awaitedAction{action: state.Action{ID: c.ID}}
		err := s.View(o.ctx, func(v *state.View) (err error) {
			if one.action, err = v.Action(c.ID); err == nil {
				one.output, err = v.Output(one.action)
			}
			return err
		})
		if err != nil {
			return err
		}
		if c.Wait.set {
			return awaitActions(o, s, []state.Action{{ID: c.ID}}, c.Wait.timeout, c.Format)
		}
		return printActions(o, []*awaitedAction{&one}, c.Format)
	})
}

type actionDoc struct {
	ID         int            `json:"id" yaml:"id"`
	Unit       string         `json:"unit" yaml:"unit"`
	Action     string         `json:"action,omitempty" yaml:"action,omitempty"`
	Command    []string       `json:"command,omitempty" yaml:"command,omitempty,flow"`
	Parameters map[string]any `json:"parameters,omitempty" yaml:"parameters,omitempty"`
	Status     string         `json:"status" yaml:"status"`
	Message    string         `json:"message,omitempty" yaml:"message,omitempty"`
	Results    map[string]any `json:"results,omitempty" yaml:"results,omitempty"`
	Code       *int           `json:"code,omitempty" yaml:"code,omitempty"`
	Stdout     string         `json:"stdout,omitempty" yaml:"stdout,omitempty"`
	Stderr     string         `json:"stderr,omitempty" yaml:"stderr,omitempty"`
	Dropped    int64          `json:"bytes-missing,omitempty" yaml:"bytes-missing,omitempty"`
	Log        []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Enqueued   string         `json:"enqueued" yaml:"enqueued"`
	Started    string         `json:"started,omitempty" yaml:"started,omitempty"`
	Completed  string         `json:"completed,omitempty" yaml:"completed,omitempty"`
}

func newActionDoc(a state.Action, out state.Output) actionDoc {
	doc := actionDoc{
		ID: a.ID, Unit: a.Unit, Action: a.Name, Command: a.Command, Parameters: a.Parameters, Status: string(a.Status),
		Message: a.Message, Results: a.Results, Code: a.Code,
		Stdout: string(out.Stdout), Stderr: string(out.Stderr), Dropped: out.Dropped,
		Enqueued: formatTime(a.Enqueued), Started: formatTime(a.Started), Completed: formatTime(a.Completed),
	}
	for _, line := range a.Progress {
		doc.Log = append(doc.Log, formatTime(line.Time)+" "+line.Message)
	}
	return doc
}

// formatTime returns "" for a time that is not known.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// printActions prints a single action as a document, several as a list.
func printActions(o *operator, all []*awaitedAction, format string) error {
	var docs []actionDoc
	for _, a := range all {
		docs = append(docs, newActionDoc(a.action, a.output))
	}
	if len(docs) == 1 {
		return o.encode(format, docs[0])
	}
	return o.encode(format, docs)
}

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
	t := console.NewTable("ID", "UNIT", "ACTION", "STATUS", "ENQUEUED", "MESSAGE")
	for _, a := range actions {
		docs = append(docs, newActionDoc(a, state.Output{}))
		t.Add(actionColour(a.Status), strconv.Itoa(a.ID), a.Unit, actionTitle(a), string(a.Status),
			a.Enqueued.Local().Format(time.DateTime), firstLine(a.Message))
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
	title := []rune(firstLine("run: " + strings.Join(a.Command, " ")))
	if len(title) > 40 {
		return string(title[:37]) + "..."
	}
	return string(title)
}

func actionColour(status state.ActionStatus) console.Colour {
	if status == state.ActionFailed {
		return console.Red
	}
	return ""
}
