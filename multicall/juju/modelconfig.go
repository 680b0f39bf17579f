package juju

import (
	"maps"
	"slices"
	"strings"

	"bijou/state"
)

type modelConfigCmd struct {
	Words      []string `arg:"" optional:"" name:"key=value" help:"The settings to set. A single key prints its value. Without keys, all settings are shown."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
	File       []string `sep:"none" placeholder:"FILE" help:"Set the settings in this YAML file, {KEY: VALUE}; those on the command line override."`
	resetFlags
}

// modelStatusInterval is Juju's name for [state.StatusInterval].
const modelStatusInterval = "update-status-hook-interval"

// Run prints settings of the environment, or sets and resets them as set-environment does.
func (c modelConfigCmd) Run(o *operator) error {
	// For set-environment, KEY= is a reset.
	words := c.Words
	for _, key := range c.Reset {
		words = append(words, key+"=")
	}

	if len(c.File) > 0 {
		given, err := readSettings(append(slices.Clone(c.File), c.Words...))
		if err != nil {
			return err
		}

		// given has the settings of the files and of c.Words. Of words, only those of --reset stay.
		words = words[len(c.Words):]
		for _, key := range slices.Sorted(maps.Keys(given)) {
			words = append(words, key+"="+given[key])
		}
	}

	// Juju's keys become bijou's own keys for the same settings.
	for i, word := range words {
		key, _, _ := strings.Cut(word, "=")
		words[i] = nativeSetting(key) + strings.TrimPrefix(word, key)
	}

	if !c.asks(c.Words) || len(c.File) > 0 { // a KEY=VALUE, --reset or --file changes settings
		return setEnvironmentCmd{words}.Run(o)
	}
	if len(words) == 1 {
		return getEnvironmentCmd{Key: words[0]}.Run(o)
	}
	return c.showAll(o)
}

// showAll prints all settings of the environment. The source of a setting says whether its value is the
// default or was set for the model, or that this version does not know the setting.
func (c modelConfigCmd) showAll(o *operator) error {
	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}

	settings := map[string]map[string]any{}
	for key, value := range environmentValues(e) {
		settings[key] = map[string]any{"Value": value, "Source": "default"}
		if _, isSet := e.Config[key]; isSet {
			settings[key]["Source"] = "model"
		}
	}
	for _, key := range e.UnknownSettings() {
		settings[key]["Source"] = "unknown"
	}

	// The status interval is also shown under Juju's name.
	settings[modelStatusInterval] = settings[state.StatusInterval]
	return o.encode(c.Format, settings)
}
