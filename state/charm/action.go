package charm

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Action is what a charm can do when an operator asks for it: the file
// actions/NAME, or its dispatch.
type Action struct {
	Description string `json:"description,omitempty"`
	Params      Schema `json:"params"` // of the dictionary of all parameters
}

// actionYAML is an action as actions.yaml has it: Params are what the keywords
// "required" and "additionalProperties" beside them are about.
type actionYAML struct {
	Description string               `yaml:"description"`
	Params      map[string]yaml.Node `yaml:"params"`
	Properties  map[string]yaml.Node `yaml:"properties"` // the same, as JSON Schema calls it
	Required    []string             `yaml:"required"`
	Closed      closedYAML           `yaml:"additionalProperties"`
}

// actionName is what an action may be called: it names a file.
var actionName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*$`)

// CheckAction refuses what no action is called.
func CheckAction(name string) error {
	if len(name) > maxName || !actionName.MatchString(name) {
		return fmt.Errorf("invalid action name %q: want letters, digits, '-', '_' and '.', a letter first", name)
	}
	return nil
}

// ParseActions reads and checks actions.yaml.
func ParseActions(data []byte) (map[string]Action, error) {
	var raw map[string]yaml.Node
	if err := unmarshalCharm(data, &raw); err != nil {
		return nil, err
	}
	return decodeActions(raw)
}

// parseCharmcraftActions reads the same dictionary from under `actions`.
func parseCharmcraftActions(data []byte) (map[string]Action, error) {
	var raw struct {
		Actions map[string]yaml.Node `yaml:"actions"`
	}
	if err := unmarshalCharm(data, &raw); err != nil {
		return nil, err
	}
	return decodeActions(raw.Actions)
}

// maxActionValues bounds what the actions of a charm stand for, aliases followed, in
// values: each part of them is decoded by itself, and so is each time within what
// yaml.v3 bounds.
const maxActionValues = 50_000

// countValues counts the values that a node stands for, up to one more than maxActionValues.
func countValues(n *yaml.Node, known map[*yaml.Node]int) int {
	if w, ok := known[n]; ok {
		return w
	}
	known[n] = maxActionValues + 1 // it is what an alias inside of it would stand for
	w := 1
	if n.Kind == yaml.AliasNode {
		w += countValues(n.Alias, known)
	}
	for _, child := range n.Content {
		w = min(w+countValues(child, known), maxActionValues+1)
	}
	known[n] = w
	return w
}

// decodeActions checks what was read, in the order of the names.
func decodeActions(raw map[string]yaml.Node) (map[string]Action, error) {
	actions := map[string]Action{}
	total, known := 0, map[*yaml.Node]int{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		node := raw[name]
		if total += countValues(&node, known); total > maxActionValues {
			return nil, fmt.Errorf("action %q: too big: all actions together have more than %d values", name, maxActionValues)
		}
		if name == "additionalProperties" && raw[name].Kind == yaml.ScalarNode {
			continue // what some write at the top, meaning all actions
		}
		if err := CheckAction(name); err != nil {
			return nil, err
		}
		a, err := decodeAction(&node)
		if err != nil {
			return nil, fmt.Errorf("action %q: %w", name, err)
		}
		actions[name] = a
	}
	return actions, nil
}

func decodeAction(node *yaml.Node) (Action, error) {
	var raw actionYAML
	if err := decodeNode(node, &raw); err != nil {
		return Action{}, err
	}
	a := Action{Description: raw.Description, Params: Schema{
		Types: typesYAML{"object"}, Properties: map[string]Schema{}, Required: raw.Required, Closed: raw.Closed,
	}}
	params := map[string]yaml.Node{}
	maps.Copy(params, raw.Properties)
	maps.Copy(params, raw.Params)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if name == "" || strings.Contains(name, ".") {
			return Action{}, fmt.Errorf("invalid parameter name %q: it is empty or has a dot, which leads into dictionaries", name)
		}
		var p Schema
		node := params[name]
		if err := decodeNode(&node, &p); err != nil {
			return Action{}, fmt.Errorf("parameter %q: %w", name, err)
		}
		a.Params.Properties[name] = p
	}
	return a, a.Params.checkSchema("", 0)
}

// decodeNode is Node.Decode with errors for one line; a parser that panics on
// hostile bytes must not take an agent with it.
func decodeNode(node *yaml.Node, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot parse YAML: %v", p)
		}
	}()
	return shortenError(node.Decode(into))
}

// Check holds parameters against the action's schema and returns them complete,
// with the defaults of those that were not given, in JSON's types.
func (a Action) Check(parameters map[string]any) (map[string]any, error) {
	given, ok := toJSON(parameters).(map[string]any)
	if !ok && len(parameters) > 0 {
		return nil, errors.New("the parameters hold what JSON cannot say")
	}
	if given == nil {
		given = map[string]any{}
	}
	if err := a.Params.checkValue("", given); err != nil {
		return nil, err
	}
	return a.Params.addDefaults(given), nil
}

// Undescribed lists the parameters, of those given, that the charm says nothing
// about: it may take them, or they may be mistyped.
func (a Action) Undescribed(parameters map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if _, known := a.Params.Properties[name]; !known {
			names = append(names, name)
		}
	}
	return names
}

// ParseText makes a value of what an operator typed for a parameter, which a
// path of names leads to: text as it is where a string is wanted, else YAML.
func (a Action) ParseText(path []string, text string) (any, error) {
	s := a.Params
	for _, name := range path {
		s = s.Properties[name]
	}
	if slices.Contains(s.Types, "string") {
		return text, checkText(text)
	}
	var value any
	if err := unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return value, nil
}

// readActions reads actions.yaml and what a charmcraft.yaml says of actions,
// which holds where both name one.
func (c *Charm) readActions(read func(name string) ([]byte, error)) error {
	c.Actions = map[string]Action{}
	for _, from := range []struct {
		file  string
		parse func([]byte) (map[string]Action, error)
	}{{"actions.yaml", ParseActions}, {"charmcraft.yaml", parseCharmcraftActions}} {
		if !c.hasFile(from.file) {
			continue
		}
		data, err := read(from.file)
		var actions map[string]Action
		if err == nil {
			actions, err = from.parse(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from.file, err)
		}
		maps.Copy(c.Actions, actions)
	}
	return nil
}
