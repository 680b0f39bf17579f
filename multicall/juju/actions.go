package juju

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

type actionsCmd struct {
	Service string `arg:"" help:"The service."`
	Format  string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json (with the schemas of the parameters); default tabular."`
}

type actionInfo struct {
	Description string               `json:"description,omitempty" yaml:"description,omitempty"`
	Params      map[string]paramInfo `json:"params,omitempty" yaml:"params,omitempty"`
	Required    []string             `json:"required,omitempty" yaml:"required,omitempty"`
}

type paramInfo struct {
	Type        string               `json:"type,omitempty" yaml:"type,omitempty"`
	Description string               `json:"description,omitempty" yaml:"description,omitempty"`
	Default     any                  `json:"default,omitempty" yaml:"default,omitempty"`
	Enum        []any                `json:"enum,omitempty" yaml:"enum,omitempty"`
	Properties  map[string]paramInfo `json:"properties,omitempty" yaml:"properties,omitempty"`
}

// Run prints the actions of the service's charm.
func (c actionsCmd) Run(o *operator) error {
	actions, err := readChosen(o, func(v *state.View) (map[string]charm.Action, error) {
		ch, err := charmOf(v, c.Service)
		return ch.Actions, err
	})
	if err != nil {
		return err
	}
	if len(actions) == 0 && c.Format == "tabular" {
		o.note("the charm of service %q has no actions", c.Service)
	}
	docs := map[string]actionInfo{}
	t := console.NewTable("ACTION", "PARAMETERS", "DESCRIPTION")
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		a := actions[name]
		docs[name] = actionInfo{a.Description, paramInfos(a.Params), a.Params.Required}
		t.Add("", name, paramNames(a.Params), firstLine(a.Description))
	}
	return o.printTable(c.Format, docs, t)
}

func paramInfos(s charm.Schema) map[string]paramInfo {
	infos := map[string]paramInfo{}
	for name, p := range s.Properties {
		infos[name] = paramInfo{
			Type: strings.Join(p.Types, " or "), Description: p.Description, Default: p.Default, Enum: p.Enum, Properties: paramInfos(p),
		}
	}
	return infos
}

// paramNames lists required parameters first, the others in brackets.
func paramNames(s charm.Schema) string {
	var required, others []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) {
			required = append(required, name)
		} else {
			others = append(others, "["+name+"]")
		}
	}
	return strings.Join(append(required, others...), " ")
}

type cancelActionCmd struct {
	IDs []int `arg:"" name:"id" help:"The actions' ids."`
	removalFlags
}

// Run cancels all or none.
func (c cancelActionCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		var ids []string
		for _, id := range c.IDs {
			ids = append(ids, strconv.Itoa(id))
		}
		cancel := func(tx *state.Tx, id string) error {
			n, err := strconv.Atoi(id)
			return errors.Join(err, tx.CancelAction(n, time.Now()))
		}
		return c.removeAll(o, s, removalKind{name: "action", outcome: "does not begin, or is told to end", check: cancel}, ids)
	})
}

// taskError begins an error with what programs that know Juju look for in it.
func taskError(err error, timedOut bool) error {
	switch {
	case err == nil:
		return nil
	case timedOut:
		return fmt.Errorf("timed out: %w", err)
	}
	return fmt.Errorf("task failed: %w", err)
}

const taskFormat = "task" // JSON with the keys of Juju 3

// task is an action or a command as Juju 3 shows it.
type task struct {
	ID      string         `json:"id" yaml:"id"`
	Unit    string         `json:"unit,omitempty" yaml:"unit,omitempty"`
	Status  string         `json:"status" yaml:"status"`
	Message string         `json:"message,omitempty" yaml:"message,omitempty"`
	Log     []string       `json:"log,omitempty" yaml:"log,omitempty"`
	Results map[string]any `json:"results" yaml:"results"` // with return-code, stdout and stderr
}

// printTasks prints them by unit.
func printTasks(o *operator, format string, actions []*awaitedAction) error {
	all := map[string]task{}
	for _, a := range actions {
		doc := newActionDoc(a.action, a.output)
		all[doc.Unit] = task{
			ID: strconv.Itoa(doc.ID), Unit: doc.Unit, Status: doc.Status, Message: cmp.Or(doc.Message, a.stuckReason), Log: doc.Log,
			Results: taskResults(doc.Results, doc.Code, doc.Stdout, doc.Stderr),
		}
	}
	return o.encode(format, all)
}

func taskResults(of map[string]any, code *int, stdout, stderr string) map[string]any {
	results := map[string]any{}
	maps.Copy(results, of)
	if code != nil {
		results["return-code"] = *code
	}
	for key, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
		if text != "" {
			results[key] = text
		}
	}
	return results
}
