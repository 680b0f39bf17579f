package juju

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// nativeSettings returns the settings with bijou's own keys instead of Juju's keys for the same settings.
func nativeSettings(given map[string]string) map[string]string {
	native := map[string]string{}
	for key, value := range given {
		native[nativeSetting(key)] = value
	}
	return native
}

// noteJujuSettings prints which of the settings are settings of Juju that have no effect in bijou.
func (o *operator) noteJujuSettings(given map[string]string) {
	unused := slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(key string) bool {
		return !state.IsJujuSetting(key)
	})
	if len(unused) > 0 {
		o.note("note: %s: stored and shown, but without effect in bijou", strings.Join(unused, ", "))
	}
}

// readSettings returns the settings in words, by key. Each word is a setting KEY=VALUE, or the name of a YAML
// file of the form {KEY: VALUE}. A word with "=" is always a setting. Later words override earlier ones.
func readSettings(words []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, word := range words {
		if key, value, isPair := strings.Cut(word, "="); isPair {
			settings[key] = value
			continue
		}

		data, err := readFile(word, charm.MaxYAML)
		if err != nil {
			return nil, console.Usage(fmt.Errorf("cannot read settings: %w", err))
		}
		var file map[string]string
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, console.Usage(fmt.Errorf("cannot read settings from %q: %w", word, err))
		}
		maps.Copy(settings, file)
	}

	return settings, nil
}
