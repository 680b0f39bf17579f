package juju

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type modelDefaultsCmd struct {
	Words      []string `arg:"" optional:"" name:"key=value" help:"The settings to set. A single key shows only that setting. Without keys, all settings are shown."`
	Format     string   `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
	Cloud      string `hidden:"" help:"As it is: the defaults are this host's."`
	Region     string `hidden:"" help:"As it is: the defaults are this host's."`
	resetFlags
}

// modelDefault is the default of a setting, under Juju's keys.
type modelDefault struct {
	Default string `yaml:"default" json:"default"`
	Host    string `yaml:"controller,omitempty" json:"controller,omitempty"`
}

// Run prints or changes this host's initial settings of new environments. It changes all given settings, or
// none.
func (c modelDefaultsCmd) Run(o *operator) error {
	if c.Cloud+c.Region != "" {
		o.note("bijou has no clouds: the defaults apply to all models that are created on this host")
	}

	defaults, err := o.home.Defaults()
	if err != nil {
		return err
	}
	if c.asks(c.Words) { // no KEY=VALUE and no --reset
		return c.show(o, defaults)
	}

	changed, err := c.change(defaults)
	if err != nil {
		return fmt.Errorf("cannot set defaults: %w", err)
	}
	if err := o.home.SetDefaults(changed); err != nil {
		return fmt.Errorf("cannot set defaults: %w", err)
	}

	if len(changed) == 0 {
		// describeDefaults then returns a whole sentence.
		o.note("%s", describeDefaults(changed))
		return nil
	}

	o.note("new models begin with %s", describeDefaults(changed))
	return nil
}

// change returns the defaults with the changes of the command line, under bijou's own keys. It does not modify
// defaults. An empty value removes a default, as --reset does.
func (c modelDefaultsCmd) change(defaults map[string]string) (map[string]string, error) {
	pairs, err := parsePairs(c.Words)
	if err != nil {
		return nil, err
	}
	for _, key := range c.Reset {
		pairs[key] = ""
	}

	changed := map[string]string{}
	maps.Copy(changed, defaults)

	for key, value := range pairs {
		key = nativeSetting(key)
		if err := state.CheckDefault(key, value); err != nil {
			return nil, err
		}

		changed[key] = value
		if value == "" {
			delete(changed, key)
		}
	}

	return changed, nil
}

// nativeSetting returns bijou's own key for a setting whose key can be Juju's.
func nativeSetting(key string) string {
	if key == modelStatusInterval {
		return state.StatusInterval
	}
	return key
}

// describeDefaults returns the defaults in one line, each as KEY=VALUE, or a sentence if there are none.
func describeDefaults(defaults map[string]string) string {
	if len(defaults) == 0 {
		return "this host has no defaults"
	}

	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		pairs = append(pairs, key+"="+defaults[key])
	}
	return strings.Join(pairs, " ")
}

// show prints all settings for which this host can have a default, or only the one that the command line names.
// Each has bijou's own default, and this host's. show returns an error for any other name.
func (c modelDefaultsCmd) show(o *operator, defaults map[string]string) error {
	settings := map[string]modelDefault{}
	for _, s := range state.EnvironmentSettings() {
		// The empty value is valid for every setting that can have a default.
		if state.CheckDefault(s.Key, "") == nil {
			settings[s.Key] = modelDefault{Default: s.Default, Host: defaults[s.Key]}
		}
	}
	// A newer version of bijou may have set defaults that this version does not know.
	for key, value := range defaults {
		settings[key] = modelDefault{Default: settings[key].Default, Host: value}
	}

	if len(c.Words) == 1 {
		key := nativeSetting(c.Words[0])
		setting, ok := settings[key]
		if !ok {
			return fmt.Errorf("unknown model setting %q; the settings are: %s",
				c.Words[0], strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		settings = map[string]modelDefault{key: setting}
	}

	table := console.NewTable("ATTRIBUTE", "DEFAULT", "THIS HOST")
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		table.Add(console.Plain, key, settings[key].Default, settings[key].Host)
	}
	return o.printTable(c.Format, settings, table)
}
