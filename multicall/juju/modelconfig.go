package juju

import (
	"strings"

	"bijou/state"
)

type modelConfigCmd struct {
	Words  []string `arg:"" optional:"" name:"key=value" help:"Values to set. One key alone: print its value. None: show all."`
	Format string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
	resetFlags
}

// modelStatusInterval is Juju's name of state.StatusInterval.
const modelStatusInterval = "update-status-hook-interval"

// Run does what get-environment and set-environment do.
func (c modelConfigCmd) Run(o *operator) error {
	words := c.Words
	for _, key := range c.Reset {
		words = append(words, key+"=")
	}

	for i, word := range words {
		if rest, ok := strings.CutPrefix(word, modelStatusInterval); ok {
			words[i] = state.StatusInterval + rest
		}
	}

	switch {
	case !c.asks(c.Words):
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
