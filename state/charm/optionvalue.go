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

// ParseText converts a value that an operator gave as text to the option's type: string, int64, float64 or
// bool. Its error names the option, the value and the wanted type.
func (c *Config) ParseText(name, text string) (any, error) {
	return c.convert(name, func(o Option) (any, error) { return o.fromText(text) })
}

// convert finds the option and returns the result of to(option). Its errors name the option.
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

// ParseYAML reads the values of an operator's file, in YAML or JSON. The options are at the top of the file,
// below the service's name, or in the form that `juju config` prints. A string option gets the text as it was
// written. null means unset, and is returned as nil. Unless the option is a string, an empty text means the
// same. For a value of the wrong type, the error names the option, the value and the type.
func (c *Config) ParseYAML(data []byte, service string) (map[string]any, error) {
	var nodes map[string]yaml.Node
	if err := unmarshalStrict(data, &nodes); err != nil {
		return nil, err
	}

	settings := nodes["settings"]
	charmName := nodes["charm"]
	isPrinted := settings.Kind == yaml.MappingNode && !charmName.IsZero()
	if isPrinted {
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

// parsePrinted reads options as `juju config` prints them. It returns nil for an option whose value was the
// default, if the default is still the same. If the default has changed, it returns the printed value. So the
// printed options of a service can restore its settings. It leaves out an option that had its default, and that
// the charm no longer has.
func (c *Config) parsePrinted(settings *yaml.Node) (map[string]any, error) {
	var printed map[string]map[string]yaml.Node
	if err := DecodeYAML(settings, &printed); err != nil {
		return nil, err
	}

	values := make(map[string]any, len(printed))
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		setting := printed[name]
		option, known := c.Options[name]
		// The key is default in YAML, and source in JSON.
		wasDefault := setting["default"].Value == "true" || setting["source"].Value == "default"
		if wasDefault && !known {
			// The charm that had this option was replaced, and the operator had not set the option.
			continue
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

// servicePart returns the options below the service's name. It returns all options if service is empty, or if
// the file has no such section. It returns an error if the file has only sections for other services. An option
// with the service's name has a scalar value, so it is not confused with a section.
func (c *Config) servicePart(nodes map[string]yaml.Node, service string) (map[string]yaml.Node, error) {
	if service == "" {
		return nodes, nil
	}

	node, hasEntry := nodes[service]
	if !hasEntry {
		if len(nodes) > 0 && c.hasOnlyOtherSections(nodes) {
			return nil, fmt.Errorf("the file has no section for %q, only for: %s",
				service, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "))
		}
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

// hasOnlyOtherSections reports whether all entries of a file are sections for other services: mappings whose
// names are not options. The caller has checked that no entry has the name of the service itself.
func (c *Config) hasOnlyOtherSections(nodes map[string]yaml.Node) bool {
	for name, node := range nodes {
		if _, isOption := c.Options[name]; isOption || node.Kind != yaml.MappingNode {
			return false
		}
	}
	return true
}

// Coerce converts a value from JSON or Go to the option's type: string, int64, float64 or bool. nil stays
// nil. Unless the option is a string, Coerce returns an error for a string, since the type of a stored value
// must not change silently.
func (c *Config) Coerce(name string, value any) (any, error) {
	return c.convert(name, func(o Option) (any, error) { return o.coerce(value) })
}

// UnmarshalJSON reads a stored option. It converts the default to the option's type, since JSON has only one
// type of numbers.
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

// coerce converts a value from JSON or Go to the option's type, as [Config.Coerce] does. nil stays nil.
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

// fromInt converts a whole number to the option's type. It returns an error unless that is int or float.
func (o Option) fromInt(v int64) (any, error) {
	switch o.Type {
	case Int:
		return v, nil
	case Float:
		return float64(v), nil
	}

	return nil, o.typeError(strconv.FormatInt(v, 10))
}

// fromFloat converts a number to the option's type. For an int it accepts whole numbers up to 2^53. Above
// that a float64 can stand for several whole numbers.
func (o Option) fromFloat(v float64) (any, error) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		// The error is returned below. JSON does not have these numbers.
	case o.Type == Float:
		return v, nil
	case o.Type == Int && v == math.Trunc(v) && math.Abs(v) <= 1<<53:
		return int64(v), nil
	}

	return nil, o.typeError(strconv.FormatFloat(v, 'g', -1, 64))
}

// fromNode converts a YAML node to the option's type. It returns nil for null and for an absent node. Unless
// the option is a string, it also returns nil for an empty text, since old charms have empty texts as
// defaults.
func (o Option) fromNode(n *yaml.Node) (any, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	isEmptyText := n.Kind == yaml.ScalarNode && n.Value == ""
	switch {
	case n.IsZero(), n.ShortTag() == "!!null":
		return nil, nil
	case isEmptyText && o.Type != String:
		return nil, nil
	case n.Kind == yaml.MappingNode:
		return nil, o.typeError("a dictionary")
	case n.Kind == yaml.SequenceNode:
		return nil, o.typeError("a list")
	case n.ShortTag() == "!!binary":
		return nil, o.typeError("binary data")
	}

	if n.ShortTag() == "!!int" && (o.Type == Int || o.Type == Float) {
		// YAML also has octal and hexadecimal numbers.
		var whole int64
		if err := n.Decode(&whole); err == nil {
			return o.fromInt(whole)
		}
		// The number does not fit into an int64. fromText returns the error, or the float.
	}

	return o.fromText(n.Value)
}

// fromText parses a text as a value of the option's type. It returns an error if the text is not such a value,
// or if it is a string that cannot be passed to a hook.
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

// checkText returns an error for a string that cannot be passed to a hook.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%.60q is not UTF-8: encode it, for example with base64", s)
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("the value has a NUL byte: encode it, for example with base64")
	}

	return nil
}

// typeError returns the error for a value that does not have the option's type. given describes the value.
func (o Option) typeError(given string) error {
	want := map[OptionType]string{
		String:  "a string",
		Int:     "an int",
		Float:   "a float",
		Boolean: "a boolean (true or false)",
	}[o.Type]
	return fmt.Errorf("%s is not %s", given, want)
}
