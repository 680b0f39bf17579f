package juju

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state"
)

type setEnvironmentCmd struct {
	Values []string `arg:"" name:"key=value" help:"Values; an empty one goes back to the default."`
}

func environmentHelp() string {
	b := strings.Builder{}
	b.WriteString("Settings:\n")
	for _, s := range state.EnvironmentSettings() {
		fmt.Fprintf(&b, "  %s: %s\n      %s; default: %s\n", s.Key, s.Meaning, s.Values, s.Default)
	}
	b.WriteString("  PROVIDER.KEY: whatever the environment's provider takes\n      as nspawn.apt-repository\n")
	return b.String()
}

// Run sets the values, all or none.
func (c setEnvironmentCmd) Run(o *operator) error {
	pairs, err := parsePairs(c.Values)
	if err != nil {
		return err
	}
	changes := map[string]*string{}
	for key, value := range pairs {
		changes[key] = nil
		if value != "" {
			changes[key] = &value
		}
	}
	return o.update(func(tx *state.Tx) error { return tx.SetEnvironment(changes) })
}

type getEnvironmentCmd struct {
	Key string `arg:"" optional:"" help:"Print this value only."`
}

// Run prints one value, or all as YAML, defaults applied.
func (c getEnvironmentCmd) Run(o *operator) error {
	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}
	values := environmentValues(e)
	if c.Key == "" {
		return o.encode("yaml", values)
	}
	value, ok := values[c.Key]
	if !ok {
		return fmt.Errorf("unknown environment setting %q: there are %s", c.Key, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	_, err = fmt.Fprintln(o.streams.Out, value)
	return err
}

func environmentValues(e state.Environment) map[string]any {
	values := map[string]any{
		"name": e.Name, "uuid": e.UUID, "provider": e.Provider, "default-series": e.DefaultSeries,
		state.RetryHooks: e.RetryHooks(), state.StatusInterval: cmp.Or(e.Config[state.StatusInterval], "5m"),
		state.HookTimeout: cmp.Or(e.Config[state.HookTimeout], "0"), state.HookConcurrency: "default",
		state.AllowOtherSeries: e.AllowsOtherSeries(),
	}
	for key, value := range e.ProviderConfig() {
		values[e.Provider+"."+key] = value
	}
	if sum := e.Config[state.ProviderSHA256]; sum != "" {
		values[state.ProviderSHA256] = sum
	}
	if n := e.HookConcurrency(); n > 0 {
		values[state.HookConcurrency] = n
	}
	return values
}
