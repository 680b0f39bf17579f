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

// Run prints or sets configuration, as get-environment and set-environment do.
func (c modelConfigCmd) Run(o *operator) error {
	words := c.Words
	for _, key := range c.Reset {
		words = append(words, key+"=")
	}

	if len(c.File) > 0 {
		given, err := readSettings(append(slices.Clone(c.File), c.Words...))
		if err != nil {
			return err
		}

		// given has the files and the words, so only the words of --reset are kept as they are.
		words = words[len(c.Words):]
		for _, key := range slices.Sorted(maps.Keys(given)) {
			words = append(words, key+"="+given[key])
		}
	}

	for i, word := range words {
		key, _, _ := strings.Cut(word, "=")
		words[i] = nativeSetting(key) + strings.TrimPrefix(word, key)
	}

	switch {
	case !c.asks(c.Words) || len(c.File) > 0:
		return setEnvironmentCmd{words}.Run(o)
	case len(words) == 1:
		return getEnvironmentCmd{Key: words[0]}.Run(o)
	}

	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}

	all := map[string]map[string]any{}
	for key, value := range environmentValues(e) {
		all[key] = map[string]any{"Value": value, "Source": "default"}
		if _, set := e.Config[key]; set {
			all[key]["Source"] = "model"
		}
	}

	for _, key := range e.UnknownSettings() {
		all[key]["Source"] = "unknown"
	}
	all[modelStatusInterval] = all[state.StatusInterval]
	return o.encode(c.Format, all)
}
