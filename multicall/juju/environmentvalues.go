package juju

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charmsource"
)

// environmentHelp returns the help on all settings of an environment.
func environmentHelp() string {
	b := strings.Builder{}
	b.WriteString("Settings:\n")
	for _, s := range state.EnvironmentSettings() {
		fmt.Fprintf(&b, "  %s: %s\n      %s; default: %s\n", s.Key, s.Meaning, s.Values, s.Default)
	}
	b.WriteString("  PROVIDER.KEY: a setting of the model's provider\n      such as nspawn.apt-repository\n")
	return b.String()
}

// environmentValues returns the values of an environment's settings, by the settings' keys. A setting that is
// not set has its default. Settings of the provider and of Juju, and the provider's checksum, are left out if
// they are not set.
func environmentValues(e state.Environment) map[string]any {
	values := map[string]any{
		"name":                 e.Name,
		"uuid":                 e.UUID,
		"provider":             e.Provider,
		"default-series":       e.DefaultSeries,
		state.RetryHooks:       e.RetryHooks(),
		state.StatusInterval:   cmp.Or(e.Config[state.StatusInterval], "5m"),
		state.HookTimeout:      cmp.Or(e.Config[state.HookTimeout], "0"),
		state.HookConcurrency:  "default",
		state.AllowOtherSeries: e.AllowsOtherSeries(),
		state.HarvestMode:      string(e.Harvest()),
		state.ResolvedSkips:    e.ResolvedSkips(),
		state.CharmhubURL:      cmp.Or(e.Config[state.CharmhubURL], charmsource.CharmhubURL),
	}

	// By default, a proxy is an empty text.
	for _, key := range []string{
		state.CharmHTTPProxy, state.CharmHTTPSProxy, state.CharmFTPProxy, state.CharmNoProxy,
	} {
		values[key] = e.Config[key]
	}

	for key, value := range e.ProviderConfig() {
		values[e.Provider+"."+key] = value
	}
	// Settings of Juju, and settings that a newer version of bijou has set, have no defaults.
	for key, value := range e.Config {
		if state.IsJujuSetting(key) || slices.Contains(e.UnknownSettings(), key) {
			values[key] = value
		}
	}

	if sum := e.Config[state.ProviderSHA256]; sum != "" {
		values[state.ProviderSHA256] = sum
	}
	if n := e.HookConcurrency(); n > 0 {
		values[state.HookConcurrency] = n
	}
	return values
}
