package juju

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/sanitize"
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
		t.Add("", name, paramNames(a.Params), sanitize.FirstLine(a.Description))
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
			if err != nil {
				return err
			}
			return tx.CancelAction(n, time.Now())
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
			a.Enqueued.Local().Format(time.DateTime), sanitize.FirstLine(a.Message))
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
	title := []rune(sanitize.FirstLine("run: " + strings.Join(a.Command, " ")))
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
