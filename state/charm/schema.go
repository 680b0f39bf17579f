package charm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"bijou/state/number"
)

// maxDepth is how deeply schemas can be nested.
const maxDepth = 32

// Schema is the part of JSON Schema that charms use, for one parameter of an action. Unknown keywords are
// ignored, as the standard requires. Numbers keep the form in which they were written. UnmarshalYAML reads
// the fields whose YAML key is "-".
type Schema struct {
	Types       Strings           `json:"types,omitempty" yaml:"type"` // the allowed types; empty for any type
	Title       string            `json:"title,omitempty" yaml:"title"`
	Description string            `json:"description,omitempty" yaml:"description"`
	Default     any               `json:"default,omitempty" yaml:"-"`
	Enum        []any             `json:"enum,omitempty" yaml:"-"`
	Minimum     json.Number       `json:"minimum,omitempty" yaml:"-"` // empty for no minimum
	Maximum     json.Number       `json:"maximum,omitempty" yaml:"-"`
	MinLength   *int              `json:"minLength,omitempty" yaml:"minLength"` // in characters
	MaxLength   *int              `json:"maxLength,omitempty" yaml:"maxLength"`
	Pattern     string            `json:"pattern,omitempty" yaml:"pattern"`
	Items       *Schema           `json:"items,omitempty" yaml:"items"`
	Properties  map[string]Schema `json:"properties,omitempty" yaml:"properties"`
	Required    []string          `json:"required,omitempty" yaml:"required"`
	// Closed is true if a dictionary can have only the keys in Properties.
	Closed closedYAML `json:"closed,omitempty" yaml:"additionalProperties"`
}

// UnmarshalYAML reads a schema, and keeps its numbers as they were written.
func (s *Schema) UnmarshalYAML(n *yaml.Node) error {
	type keywords Schema // without this method, which Decode would call again
	if err := n.Decode((*keywords)(s)); err != nil {
		return err
	}

	// These are the fields with the YAML key "-". number.FromYAML keeps their numbers as they were written.
	var values struct{ Default, Enum, Minimum, Maximum yaml.Node }
	if err := n.Decode(&values); err != nil {
		return err
	}

	var err error
	if s.Default, err = number.FromYAML(&values.Default); err != nil {
		return fmt.Errorf("default: %w", err)
	}
	if s.Enum, err = decodeEnum(&values.Enum); err != nil {
		return fmt.Errorf("enum: %w", err)
	}
	if s.Minimum, err = decodeLimit(&values.Minimum); err != nil {
		return fmt.Errorf("minimum: %w", err)
	}
	if s.Maximum, err = decodeLimit(&values.Maximum); err != nil {
		return fmt.Errorf("maximum: %w", err)
	}

	return nil
}

// decodeEnum reads the keyword enum. It returns nil if the keyword is absent or null.
func decodeEnum(n *yaml.Node) ([]any, error) {
	value, err := number.FromYAML(n)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, nil
	}

	list, isList := value.([]any)
	if !isList {
		return nil, fmt.Errorf("%s is not a list", formatValue(value))
	}
	return list, nil
}

// decodeLimit reads the keyword minimum or maximum. It returns "" if the keyword is absent or null.
func decodeLimit(n *yaml.Node) (json.Number, error) {
	value, err := number.FromYAML(n)
	if err != nil {
		return "", err
	}
	if value == nil {
		return "", nil
	}

	limit, isNumber := value.(json.Number)
	if !isNumber {
		return "", fmt.Errorf("%s is not a number", formatValue(value))
	}
	return limit, nil
}

// closedYAML is true for `additionalProperties: false`. If additionalProperties is a schema, closedYAML is
// false, and values are not checked against that schema.
type closedYAML bool

// UnmarshalYAML accepts a boolean or a schema. With a schema, further properties are allowed.
func (c *closedYAML) UnmarshalYAML(n *yaml.Node) error {
	// A schema is not a scalar. c stays false.
	if n.Kind != yaml.ScalarNode {
		return nil
	}

	var open bool
	err := n.Decode(&open)
	*c = closedYAML(!open)
	return err
}

// checkSchema checks the types, the pattern and the depth of the schema and of all schemas in it. at is the schema's
// path in the action's parameters, for errors. depth is the number of schemas that contain this one.
func (s Schema) checkSchema(at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: nested too deep: more than %d levels", at, maxDepth)
	}

	known := []string{"string", "integer", "number", "boolean", "array", "object", "null"}
	for _, t := range s.Types {
		if !slices.Contains(known, t) {
			return fmt.Errorf("%s: unknown type %q: want one of %s", at, t, strings.Join(known, ", "))
		}
	}

	if _, err := regexp.Compile(s.Pattern); err != nil {
		return fmt.Errorf("%s: pattern %q: %w", at, s.Pattern, err)
	}

	if s.Items != nil {
		if err := s.Items.checkSchema(at+"[]", depth+1); err != nil {
			return err
		}
	}

	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if err := s.Properties[name].checkSchema(joinPath(at, name), depth+1); err != nil {
			return err
		}
	}

	return nil
}

// checkValue checks a value against the schema. The value has JSON's types, with numbers as json.Number. at is
// the value's path in the action's parameters, for errors.
func (s Schema) checkValue(at string, value any) error {
	if !s.hasType(value) {
		return fmt.Errorf("%s: %s is not of type %s", at, formatValue(value), strings.Join(s.Types, " or "))
	}

	isValue := func(allowed any) bool { return number.Equal(allowed, value) }
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, isValue) {
		return fmt.Errorf("%s: %s is not one of %s", at, formatValue(value), formatValue(s.Enum))
	}

	switch v := value.(type) {
	case string:
		return s.checkString(at, v)
	case json.Number:
		return s.checkNumber(at, v)
	case []any:
		return s.checkList(at, v)
	case map[string]any:
		return s.checkDictionary(at, v)
	}

	return nil
}

// hasType reports whether the schema allows the value's type.
func (s Schema) hasType(value any) bool {
	return len(s.Types) == 0 || slices.ContainsFunc(s.Types, func(t string) bool { return isType(t, value) })
}

// isType reports whether a value has the type of JSON Schema with this name.
func isType(name string, value any) (matches bool) {
	switch name {
	case "null":
		matches = value == nil
	case "string":
		_, matches = value.(string)
	case "boolean":
		_, matches = value.(bool)
	case "number":
		_, matches = value.(json.Number)
	case "integer":
		if n, isNumber := value.(json.Number); isNumber {
			_, matches = number.Whole(n)
		}
	case "array":
		_, matches = value.([]any)
	case "object":
		_, matches = value.(map[string]any)
	}

	return matches
}

// checkString checks a string against the schema.
func (s Schema) checkString(at, v string) error {
	n := utf8.RuneCountInString(v)
	switch {
	case s.MinLength != nil && n < *s.MinLength:
		return fmt.Errorf("%s: %s is too short: %d characters, at least %d", at, formatValue(v), n, *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Errorf("%s: %s is too long: %d characters, at most %d", at, formatValue(v), n, *s.MaxLength)
	}

	// checkSchema has compiled the pattern before, so there is no error. An empty pattern matches everything.
	if match, err := regexp.MatchString(s.Pattern, v); err != nil || !match {
		return fmt.Errorf("%s: %s does not match %q", at, formatValue(v), s.Pattern)
	}

	return nil
}

// checkNumber checks a number against the schema's limits.
func (s Schema) checkNumber(at string, v json.Number) error {
	switch {
	case s.Minimum != "" && number.Compare(v, s.Minimum) < 0:
		return fmt.Errorf("%s: %s is too small: at least %s", at, formatValue(v), s.Minimum)
	case s.Maximum != "" && number.Compare(v, s.Maximum) > 0:
		return fmt.Errorf("%s: %s is too large: at most %s", at, formatValue(v), s.Maximum)
	}

	return nil
}

// checkList checks the elements of a list against the schema of its items.
func (s Schema) checkList(at string, v []any) error {
	if s.Items == nil {
		return nil
	}

	for i, item := range v {
		if err := s.Items.checkValue(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
			return err
		}
	}

	return nil
}

// checkDictionary checks the keys and values of a dictionary against the schema. It does not report a missing
// parameter that has a default, since completeDictionary adds the default later.
func (s Schema) checkDictionary(at string, v map[string]any) error {
	for _, name := range s.Required {
		if _, given := v[name]; !given && s.Properties[name].Default == nil {
			return fmt.Errorf("%s is required", joinPath(at, name))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, known := s.Properties[name]
		if !known && bool(s.Closed) {
			return fmt.Errorf("unknown parameter %s; the known ones are %s",
				joinPath(at, name), cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "), "none"))
		}

		if known {
			if err := p.checkValue(joinPath(at, name), v[name]); err != nil {
				return err
			}
		}
	}

	return nil
}

// complete returns the value with defaults in its dictionaries, and with plain digits in numbers of type integer.
// It does not change the given value.
func (s Schema) complete(value any) any {
	switch v := value.(type) {
	case json.Number:
		if slices.Contains(s.Types, "integer") {
			digits, _ := number.Whole(v) // returns a number that is not whole unchanged
			return digits
		}
	case map[string]any:
		return s.completeDictionary(v)
	case []any:
		if s.Items != nil {
			return s.completeList(v)
		}
	}

	return value
}

// completeList returns a copy of the list, with each element completed by s.Items, which must not be nil.
func (s Schema) completeList(list []any) []any {
	full := make([]any, len(list))
	for i, item := range list {
		full[i] = s.Items.complete(item)
	}
	return full
}

// completeDictionary returns a copy of the dictionary with complete values, and with defaults for the values
// that are not given.
func (s Schema) completeDictionary(v map[string]any) map[string]any {
	full := map[string]any{}
	maps.Copy(full, v)

	for name, p := range s.Properties {
		given, isGiven := full[name]
		switch {
		case isGiven:
			full[name] = p.complete(given)
		case p.Default != nil:
			full[name] = p.complete(p.Default)
		case p.hasDefaults():
			// A dictionary that is not given gets the defaults of its own properties.
			full[name] = p.completeDictionary(nil)
		}
	}

	return full
}

// hasDefaults reports whether a property has a default, at any depth.
func (s Schema) hasDefaults() bool {
	for _, p := range s.Properties {
		if p.Default != nil || p.hasDefaults() {
			return true
		}
	}
	return false
}

// joinPath returns the quoted path of the property name below the quoted path at, which is empty at the top.
func joinPath(at, name string) string {
	if at == "" {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q", strings.Trim(at, `"`)+"."+name)
}

// formatValue returns a value's JSON for an error, at most 60 bytes of it.
func formatValue(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "a value that JSON cannot express"
	}
	if len(data) > 60 {
		return strings.ToValidUTF8(string(data[:60]), "") + "..."
	}

	return string(data)
}
