package charm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"
)

// OptionType is the type of a configuration option, as config.yaml names it.
type OptionType string

// The types of options, with the Go types of their values.
const (
	String  OptionType = "string"  // string
	Int     OptionType = "int"     // int64
	Float   OptionType = "float"   // float64
	Boolean OptionType = "boolean" // bool
)

// Option is one configuration option of a charm.
type Option struct {
	Type        OptionType `json:"type"`
	Description string     `json:"description,omitempty"`
	Default     any        `json:"default,omitempty"` // a value of the option's type; nil without a default
	Secret      bool       `json:"secret,omitempty"`  // whether the value is a secret's id
}

// Config is the configuration schema of a charm: its options by name.
type Config struct {
	Options map[string]Option `json:"options,omitempty"`
}

// configYAML is the content of config.yaml.
type configYAML struct {
	Options map[string]optionYAML `yaml:"options"`
}

// optionYAML is an option in config.yaml. The default is a node, so that a string stays as it was written:
// 1.10 does not become 1.1.
type optionYAML struct {
	Type        string    `yaml:"type"`
	Description string    `yaml:"description"`
	Default     yaml.Node `yaml:"default"`
}

// ParseConfig reads and checks a charm's config.yaml. Its errors name the option.
func ParseConfig(data []byte) (*Config, error) { return parseConfig(data, "") }

// parseConfig reads config.yaml or, with a key, the part of charmcraft.yaml under the key.
func parseConfig(data []byte, key string) (*Config, error) {
	var raw configYAML
	if err := unmarshalPart(data, key, &raw); err != nil {
		return nil, err
	}

	c := &Config{Options: make(map[string]Option)}
	for _, name := range slices.Sorted(maps.Keys(raw.Options)) {
		opt, err := raw.Options[name].toOption(name)
		if err != nil {
			return nil, err
		}
		c.Options[name] = opt
	}

	return c, nil
}

// toOption checks an option of config.yaml, and returns it with its default.
func (raw optionYAML) toOption(name string) (Option, error) {
	if name == "" {
		return Option{}, errors.New("an option has no name")
	}

	opt := Option{Type: OptionType(raw.Type), Description: raw.Description, Secret: raw.Type == "secret"}
	switch opt.Type {
	case "", "str", "secret":
		// Old charms leave the type out or abbreviate it. A secret's id is a string.
		opt.Type = String
	case "bool":
		opt.Type = Boolean
	case String, Int, Float, Boolean:
		// The type is known.
	default:
		return Option{}, fmt.Errorf("option %q: unknown type %q: want string, int, float or boolean",
			name, raw.Type)
	}

	value, err := opt.fromNode(&raw.Default)
	if err != nil {
		return Option{}, fmt.Errorf("default of option %q: %w", name, err)
	}

	opt.Default = value
	return opt, nil
}

// Names returns the names of the options, sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Options)) }

// Defaults returns the defaults of all options by name. The default is nil for an option without one.
func (c *Config) Defaults() map[string]any {
	values := make(map[string]any, len(c.Options))
	for name, opt := range c.Options {
		values[name] = opt.Default
	}
	return values
}

// Effective returns the values of all options by name: the value in set or, without one, the default, which
// can be nil. It ignores values for options that the charm no longer has, and values that no longer have the
// option's type.
func (c *Config) Effective(set map[string]any) map[string]any {
	values := c.Defaults()
	for name, v := range set {
		if _, ok := c.Options[name]; !ok {
			continue
		}
		if value, err := c.Coerce(name, v); err == nil && value != nil {
			values[name] = value
		}
	}

	return values
}

// findOption returns the option with this name. If there is no such option, the error lists all options.
func (c *Config) findOption(name string) (Option, error) {
	opt, ok := c.Options[name]
	if ok {
		return opt, nil
	}
	if len(c.Options) == 0 {
		return Option{}, fmt.Errorf("unknown option %q: the charm has none", name)
	}

	return Option{}, fmt.Errorf("unknown option %q: the charm has %q", name, c.Names())
}
