package juju

import (
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/number"
	"bijou/state/text"
)

type actionsCmd struct {
	Service    string `arg:"" name:"application" help:"The application."`
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, or as yaml or json with the schemas of the parameters; default tabular."`
	outputFlag `embed:""`
	Schema     bool `help:"Show the schemas of the parameters, as --format yaml does."`
}

// actionInfo is an action of a charm, as the command prints it.
type actionInfo struct {
	Description string               `json:"description,omitempty" yaml:"description,omitempty"`
	Params      map[string]paramInfo `json:"params,omitempty" yaml:"params,omitempty"`
	Required    []string             `json:"required,omitempty" yaml:"required,omitempty"`
}

// paramInfo is a parameter of an action, or of a parameter that is an object.
type paramInfo struct {
	Type        string               `json:"type,omitempty" yaml:"type,omitempty"`
	Description string               `json:"description,omitempty" yaml:"description,omitempty"`
	Default     any                  `json:"default,omitempty" yaml:"default,omitempty"`
	Enum        []any                `json:"enum,omitempty" yaml:"enum,omitempty"`
	Properties  map[string]paramInfo `json:"properties,omitempty" yaml:"properties,omitempty"`
}

// Run prints the actions of the service's charm. Only the formats yaml and json have the schemas of the
// parameters, so --schema changes the format tabular to yaml.
func (c actionsCmd) Run(o *operator) error {
	if c.Schema && c.Format == "tabular" {
		c.Format = "yaml"
	}

	actions, err := readChosen(o, func(v *state.View) (map[string]charm.Action, error) {
		ch, err := charmOf(v, c.Service)
		return ch.Actions, err
	})
	if err != nil {
		return err
	}

	if len(actions) == 0 && c.Format == "tabular" {
		o.note("the charm of application %q has no actions", c.Service)
	}

	// printTable prints the documents as yaml or json, and otherwise the table.
	docs := map[string]actionInfo{}
	t := console.NewTable("ACTION", "PARAMETERS", "DESCRIPTION")
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		a := actions[name]
		docs[name] = newActionInfo(a)
		t.Add(console.Plain, name, paramNames(a.Params), text.FirstLine(a.Description))
	}

	return o.printTable(c.Format, docs, t)
}

// newActionInfo returns the action as the command prints it.
func newActionInfo(a charm.Action) actionInfo {
	return actionInfo{Description: a.Description, Params: paramInfos(a.Params), Required: a.Params.Required}
}

// paramInfos describes the parameters of a schema by name. For a parameter that is an object, Properties
// describes the object's own parameters.
func paramInfos(s charm.Schema) map[string]paramInfo {
	infos := map[string]paramInfo{}
	for name, p := range s.Properties {
		info := paramInfo{
			Type:        strings.Join(p.Types, " or "),
			Description: p.Description,
			Default:     number.ForPrinting(p.Default),
			Properties:  paramInfos(p),
		}
		for _, value := range p.Enum {
			info.Enum = append(info.Enum, number.ForPrinting(value))
		}
		infos[name] = info
	}

	return infos
}

// paramNames returns the parameters' names in one line. Required parameters come first. Optional parameters
// are in brackets.
func paramNames(s charm.Schema) string {
	var required, optional []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) {
			required = append(required, name)
		} else {
			optional = append(optional, "["+name+"]")
		}
	}

	return strings.Join(append(required, optional...), " ")
}
