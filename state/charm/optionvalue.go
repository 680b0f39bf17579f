package charm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ParseText converts a value that an operator gave as text (`set title=Hello`) to the option's
// type: string, int64, float64 or bool. The error names the option, the value and the wanted type.
func (c *Config) ParseText(name, text string) (any, error) {
	return c.convert(name, func(o Option) (any, error) { return o.fromText(text) })
}

// convert returns the result of to for the option. Its errors name the option.
func (c *Config) convert(name string, to func(o Option) (any, error)) (any, error) {
	opt, err := c.findOption(name)
	if err != nil {
		return nil, err
	}
	value, err := to(opt)
	if err != nil {
		return value, fmt.Errorf("option %q: %w", name, err)
	}

	return value, nil
}

// ParseYAML reads the values of an operator's file, in YAML or JSON. Options stand by name at its top,
// below the service's name, or as `juju get` prints them. A scalar counts as the text that was written.
// null means unset, and is returned as nil. For a value of the wrong type it returns an error that names
// option, value and type.
func (c *Config) ParseYAML(data []byte, service string) (map[string]any, error) {
	var nodes map[string]yaml.Node
	if err := unmarshalStrict(data, &nodes); err != nil {
		return nil, err
	}
	if settings, charm := nodes["settings"], nodes["charm"]; settings.Kind == yaml.MappingNode && !charm.IsZero() {
		return c.parsePrinted(&settings)
	}

	nodes, err := c.servicePart(nodes, service)
	if err != nil {
		return nil, err
	}
	values := make(map[string]any, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[name]
		if values[name], err = c.ParseNode(name, &node); err != nil {
			return nil, err
		}
	}

	return values, nil
}

// parsePrinted reads options as `juju get` prints them. It returns nil for an option that was at its
// default and would be now. So a service gets back its former options, defaults included.
func (c *Config) parsePrinted(settings *yaml.Node) (map[string]any, error) {
	var printed map[string]map[string]yaml.Node
	if err := DecodeYAML(settings, &printed); err != nil {
		return nil, err
	}

	values := make(map[string]any, len(printed))
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		setting := printed[name]
		option, known := c.Options[name]
		wasDefault := setting["default"].Value == "true" || setting["source"].Value == "default" // YAML, JSON
		if wasDefault && !known {
			continue // of a charm that had it
		}

		node := setting["value"]
		value, err := c.ParseNode(name, &node)
		if err != nil {
			return nil, err
		}
		if wasDefault && value == option.Default {
			value = nil
		}
		values[name] = value
	}

	return values, nil
}

// ParseNode does what ParseYAML does, for one value.
func (c *Config) ParseNode(name string, n *yaml.Node) (any, error) {
	return c.convert(name, func(o Option) (any, error) { return o.fromNode(n) })
}

// servicePart returns the options below the service's name, or all of them if there is no such section. It
// returns an error if all sections are those of other services. An option with the service's name has a
// scalar value and so is not taken for a section.
func (c *Config) servicePart(nodes map[string]yaml.Node, service string) (map[string]yaml.Node, error) {
	node, ok := nodes[service]
	if !ok && service != "" && len(nodes) > 0 && c.isOfOthers(nodes) {
		return nil, fmt.Errorf("it has no section for %q: it has %s",
			service, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "))
	}
	if !ok || service == "" {
		return nodes, nil
	}

	if node.Kind == yaml.AliasNode {
		node = *node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return nodes, nil
	}

	var part map[string]yaml.Node
	if err := node.Decode(&part); err != nil {
		return nil, shortenError(err)
	}

	return part, nil
}

// isOfOthers reports whether a file has only sections of other services: no option has a mapping.
func (c *Config) isOfOthers(nodes map[string]yaml.Node) bool {
	for name, node := range nodes {
		if _, isOption := c.Options[name]; isOption || node.Kind != yaml.MappingNode {
			return false
		}
	}
	return true
}

// Coerce converts a value from JSON (or Go) to the option's type: string, int64, float64 or bool. nil stays
// nil. It returns an error for a string if the option is not a string: a stored value must not silently
// change its type.
func (c *Config) Coerce(name string, value any) (any, error) {
	return c.convert(name, func(o Option) (any, error) { return o.coerce(value) })
}

// UnmarshalJSON reads a stored option. JSON has one kind of number, so that the default is
// converted to the option's type.
func (o *Option) UnmarshalJSON(data []byte) error {
	type stored Option // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode((*stored)(o))
	if err != nil {
		return err
	}

	o.Default, err = o.coerce(o.Default)
	return err
}

// coerce converts a value to the option's type, as [Config.Coerce] promises.
func (o Option) coerce(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		if o.Type == String {
			return o.fromText(v)
		}
	case bool:
		if o.Type == Boolean {
			return v, nil
		}
	case json.Number:
		if o.Type == Int || o.Type == Float {
			return o.fromText(v.String())
		}
	case int:
		return o.fromInt(int64(v))
	case int64:
		return o.fromInt(v)
	case float64:
		return o.fromFloat(v)
	}

	return nil, o.typeError(fmt.Sprintf("%.60q", fmt.Sprint(value)))
}

func (o Option) fromInt(v int64) (any, error) {
	switch o.Type {
	case Int:
		return v, nil
	case Float:
		return float64(v), nil
	}

	return nil, o.typeError(strconv.FormatInt(v, 10))
}

// fromFloat converts a whole number to an int, since JSON has one kind of number. It refuses numbers above
// 2^53, where a float64 stands for several whole numbers.
func (o Option) fromFloat(v float64) (any, error) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		// Refused below: JSON has no such number.
	case o.Type == Float:
		return v, nil
	case o.Type == Int && v == math.Trunc(v) && math.Abs(v) <= 1<<53:
		return int64(v), nil
	}

	return nil, o.typeError(strconv.FormatFloat(v, 'g', -1, 64))
}

// fromNode converts a YAML node to the option's type. It returns nil for null and for no node. An empty
// text is nil too, unless the option is a string, since old charms have such defaults.
func (o Option) fromNode(n *yaml.Node) (any, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	switch {
	case n.IsZero() || n.ShortTag() == "!!null" || n.Value == "" && n.Kind == yaml.ScalarNode && o.Type != String:
		return nil, nil
	case n.Kind == yaml.MappingNode:
		return nil, o.typeError("a dictionary")
	case n.Kind == yaml.SequenceNode:
		return nil, o.typeError("a list")
	case n.ShortTag() == "!!binary":
		return nil, o.typeError("binary data")
	}

	if n.ShortTag() == "!!int" && (o.Type == Int || o.Type == Float) {
		var whole int64 // YAML knows octal and hexadecimal numbers, too
		if err := n.Decode(&whole); err == nil {
			return o.fromInt(whole)
		}
	}

	return o.fromText(n.Value)
}

// fromText parses a text as a value of the option's type.
func (o Option) fromText(text string) (any, error) {
	switch o.Type {
	case Int:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v, nil
		}
	case Float:
		v, err := strconv.ParseFloat(text, 64)
		isNumber := err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
		if isNumber {
			return v, nil
		}
	case Boolean:
		switch strings.ToLower(text) {
		case "true", "yes", "on", "y", "t", "1":
			return true, nil
		case "false", "no", "off", "n", "f", "0":
			return false, nil
		}
	case String:
		return text, checkText(text)
	}

	return nil, o.typeError(fmt.Sprintf("%.60q", text))
}

// checkText refuses strings that cannot be passed to a hook.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%.60q is not UTF-8: encode it, as with base64", s)
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("the value has a NUL byte: encode it, as with base64")
	}

	return nil
}

func (o Option) typeError(given string) error {
	want := map[OptionType]string{
		String:  "a string",
		Int:     "an int",
		Float:   "a float",
		Boolean: "a boolean (true or false)",
	}[o.Type]
	return fmt.Errorf("%s is not %s", given, want)
}
