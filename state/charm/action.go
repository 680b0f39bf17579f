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

// Action is a task that an operator can request from a charm. The file actions/NAME or the charm's dispatch
// file runs it.
type Action struct {
	Description string `json:"description,omitempty"`
	Params      Schema `json:"params"` // schema of the dictionary of all parameters
}

// actionYAML is an action in actions.yaml. The keywords "required" and "additionalProperties" refer to the
// parameters in the same dictionary.
type actionYAML struct {
	Description string               `yaml:"description"`
	Params      map[string]yaml.Node `yaml:"params"`
	Properties  map[string]yaml.Node `yaml:"properties"` // JSON Schema's name for params
	Required    []string             `yaml:"required"`
	Closed      closedYAML           `yaml:"additionalProperties"`
}

// actionName is strict since an action's name is also a file name.
var actionName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*$`)
})

// CheckAction returns an error unless the name is valid for an action.
func CheckAction(name string) error {
	if len(name) > maxName || !actionName().MatchString(name) {
		return fmt.Errorf("invalid action name %q: want letters, digits, '-', '_' and '.', a letter first", name)
	}
	return nil
}

// maxActionValues limits the values of all actions of a charm together, including the values behind aliases.
// The limits of yaml.v3 do not suffice, since each part of an action is decoded separately.
const maxActionValues = 50_000

// countValues counts the values in a node, with aliases resolved. For more than maxActionValues values, the
// count can be inexact, but is still more than maxActionValues. known has the counts of the nodes that were
// counted before.
func countValues(n *yaml.Node, known map[*yaml.Node]int) int {
	if count, ok := known[n]; ok {
		return count
	}

	// Without this entry, an alias to n within n would never end.
	known[n] = maxActionValues + 1

	count := 1
	if n.Kind == yaml.AliasNode {
		count += countValues(n.Alias, known)
	}
	for _, child := range n.Content {
		count = min(count+countValues(child, known), maxActionValues+1)
	}

	known[n] = count
	return count
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
		total += countValues(&node, known)
		if total > maxActionValues {
			return nil, fmt.Errorf("action %q: too big: all actions together have more than %d values",
				name, maxActionValues)
		}
		if name == "additionalProperties" && node.Kind == yaml.ScalarNode {
			// Some authors write this keyword at the top level, for all actions.
			continue
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

// decodeAction reads one action of actions.yaml. Its parameters are under params or, in older charms, under
// properties.
func decodeAction(action *yaml.Node) (Action, error) {
	var raw actionYAML
	if err := DecodeYAML(action, &raw); err != nil {
		return Action{}, err
	}

	a := Action{Description: raw.Description, Params: Schema{
		Types:      Strings{"object"},
		Properties: map[string]Schema{},
		Required:   raw.Required,
		Closed:     raw.Closed,
	}}
	// Entries under params take precedence, so they are copied last.
	params := map[string]yaml.Node{}
	maps.Copy(params, raw.Properties)
	maps.Copy(params, raw.Params)

	for _, name := range slices.Sorted(maps.Keys(params)) {
		if name == "" || strings.Contains(name, ".") {
			return Action{}, fmt.Errorf(
				"invalid parameter name %q: it must not be empty or contain a dot, which separates nested keys",
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

	const path = "" // the top of the schema
	const depth = 0
	return a, a.Params.checkSchema(path, depth)
}

// Check checks parameters against the action's schema. It returns them in JSON's types, with the defaults of
// missing parameters, and with numbers as [json.Number].
func (a Action) Check(parameters map[string]any) (map[string]any, error) {
	value, err := number.Normalize(parameters)
	if err != nil {
		return nil, errors.New("the parameters contain values that JSON cannot express: encode text that is not UTF-8, for example with base64")
	}

	given, _ := value.(map[string]any)
	if given == nil { // Normalize converts a nil map to nil
		given = map[string]any{}
	}
	if err := a.Params.checkValue("", given); err != nil {
		return nil, err
	}

	return a.Params.completeDictionary(given), nil
}

// Undescribed returns the names of the parameters that the charm does not describe, sorted. The charm may accept
// them nevertheless, or they may be mistyped.
func (a Action) Undescribed(parameters map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if _, known := a.Params.Properties[name]; !known {
			names = append(names, name)
		}
	}
	return names
}

// ParseText parses the text that an operator gave for the parameter at the path. If the parameter's types
// include string, it returns the text itself. Otherwise, also for a parameter without types, it reads the text
// as YAML, with numbers as [json.Number]. If the types include boolean, it also reads the words of YAML 1.1,
// such as yes and off.
func (a Action) ParseText(path []string, text string) (any, error) {
	// A parameter that the charm does not describe gets an empty schema.
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

// ParseParameters reads an operator's file of parameters, which must be a dictionary. It returns the
// parameters in JSON's types, with numbers as [json.Number]. It returns nil for an empty file.
func ParseParameters(data []byte) (map[string]any, error) {
	value, err := parseValue(data)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, nil
	}

	parameters, isDictionary := value.(map[string]any)
	if !isDictionary {
		return nil, fmt.Errorf("%s is not a dictionary", formatValue(value))
	}
	return parameters, nil
}

// yamlTruths returns the words for booleans, besides true and false, in YAML 1.1, which Juju reads.
func yamlTruths() map[string]bool {
	return map[string]bool{"yes": true, "y": true, "on": true, "no": false, "n": false, "off": false}
}

// readActions reads the actions of actions.yaml and of charmcraft.yaml. If both have an action, the one in
// charmcraft.yaml takes precedence.
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
