package charm

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"bijou/state/number"
)

// Action is something that a charm does when an operator asks for it, by the file
// actions/NAME or its dispatch.
type Action struct {
	Description string `json:"description,omitempty"`
	Params      Schema `json:"params"` // of the dictionary of all parameters
}

// actionYAML is an action in actions.yaml. The keywords "required" and
// "additionalProperties" are about the parameters beside them.
type actionYAML struct {
	Description string               `yaml:"description"`
	Params      map[string]yaml.Node `yaml:"params"`
	Properties  map[string]yaml.Node `yaml:"properties"` // the same, as JSON Schema calls it
	Required    []string             `yaml:"required"`
	Closed      closedYAML           `yaml:"additionalProperties"`
}

// actionName is strict since an action's name is a file's.
var actionName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*$`)
})

// CheckAction returns an error unless the name can be an action's.
func CheckAction(name string) error {
	if len(name) > maxName || !actionName().MatchString(name) {
		return fmt.Errorf("invalid action name %q: want letters, digits, '-', '_' and '.', a letter first", name)
	}
	return nil
}

// maxActionValues bounds the values of all actions of a charm together, aliases followed:
// each part of them is decoded by itself, and so is each time within what yaml.v3 bounds.
const maxActionValues = 50_000

// countValues counts the values that a node stands for, at most to maxActionValues + 1.
func countValues(n *yaml.Node, known map[*yaml.Node]int) int {
	if w, ok := known[n]; ok {
		return w
	}

	known[n] = maxActionValues + 1 // for an alias inside of it, which would never end
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

// ParseActions reads and checks a charm's actions.yaml. Its errors name the action.
func ParseActions(data []byte) (map[string]Action, error) { return parseActions(data, "") }

// parseActions reads actions.yaml or, with a key, the part of charmcraft.yaml under the key.
func parseActions(data []byte, key string) (map[string]Action, error) {
	var raw map[string]yaml.Node
	if err := unmarshalPart(data, key, &raw); err != nil {
		return nil, err
	}

	actions := map[string]Action{}
	total := 0
	known := map[*yaml.Node]int{}

	for _, name := range slices.Sorted(maps.Keys(raw)) {
		node := raw[name]
		if total += countValues(&node, known); total > maxActionValues {
			return nil, fmt.Errorf("action %q: too big: all actions together have more than %d values",
				name, maxActionValues)
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

// decodeAction reads one action of actions.yaml. Parameters may stand under params or, as older charms
// write them, under properties.
func decodeAction(node *yaml.Node) (Action, error) {
	var raw actionYAML
	if err := DecodeYAML(node, &raw); err != nil {
		return Action{}, err
	}

	a := Action{Description: raw.Description, Params: Schema{
		Types:      Strings{"object"},
		Properties: map[string]Schema{},
		Required:   raw.Required,
		Closed:     raw.Closed,
	}}
	params := map[string]yaml.Node{}
	maps.Copy(params, raw.Properties)
	maps.Copy(params, raw.Params)

	for _, name := range slices.Sorted(maps.Keys(params)) {
		if name == "" || strings.Contains(name, ".") {
			return Action{}, fmt.Errorf(
				"invalid parameter name %q: it is empty or has a dot, which leads into dictionaries",
				name,
			)
		}

		var p Schema
		node := params[name]
		if err := DecodeYAML(&node, &p); err != nil {
			return Action{}, fmt.Errorf("parameter %q: %w", name, err)
		}
		a.Params.Properties[name] = p
	}

	return a, a.Params.checkSchema("", 0)
}

// Check checks parameters against the action's schema and returns them with the defaults
// of those that were not given, in JSON's types, numbers as [json.Number].
func (a Action) Check(parameters map[string]any) (map[string]any, error) {
	value, err := number.Normalize(parameters)
	if err != nil {
		return nil, errors.New("the parameters hold what JSON cannot say: encode what is not UTF-8, as with base64")
	}

	given, _ := value.(map[string]any)
	if given == nil {
		given = map[string]any{}
	}
	if err := a.Params.checkValue("", given); err != nil {
		return nil, err
	}

	return a.Params.completeDictionary(given), nil
}

// Undescribed returns the parameters that the charm does not describe: it may
// take them, or they may be mistyped.
func (a Action) Undescribed(parameters map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if _, known := a.Params.Properties[name]; !known {
			names = append(names, name)
		}
	}
	return names
}

// ParseText parses the text that an operator gave for the parameter at the path. If the parameter is a
// string, that is the text itself. Any other text is read as YAML, with the words of YAML 1.1 for booleans,
// and numbers as [json.Number].
func (a Action) ParseText(path []string, text string) (any, error) {
	s := a.Params
	for _, name := range path {
		s = s.Properties[name]
	}
	if slices.Contains(s.Types, "string") {
		return text, checkText(text)
	}
	if slices.Contains(s.Types, "boolean") {
		if truth, ok := yamlTruths()[strings.ToLower(text)]; ok {
			return truth, nil
		}
	}

	return parseValue([]byte(text))
}

// ParseParameters reads an operator's file of parameters: a dictionary, in JSON's types, numbers as
// [json.Number].
func ParseParameters(data []byte) (map[string]any, error) {
	value, err := parseValue(data)
	if err != nil || value == nil {
		return nil, err
	}

	parameters, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%s is not a dictionary", formatValue(value))
	}
	return parameters, nil
}

// yamlTruths returns the words that YAML 1.1, which Juju reads, has for booleans beside true and false.
func yamlTruths() map[string]bool {
	return map[string]bool{"yes": true, "y": true, "on": true, "no": false, "n": false, "off": false}
}

// readActions reads the actions of actions.yaml and of charmcraft.yaml. The latter wins if both have an
// action.
func (c *Charm) readActions(read func(name string) ([]byte, error)) error {
	c.Actions = map[string]Action{}
	for _, from := range []struct{ file, key string }{{"actions.yaml", ""}, {"charmcraft.yaml", "actions"}} {
		_, err := c.parseFile(from.file, read, func(data []byte) error {
			actions, err := parseActions(data, from.key)
			if err != nil {
				return err
			}

			maps.Copy(c.Actions, actions)
			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}
