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

// nativeSettings returns the settings under this environment's keys instead of Juju's.
func nativeSettings(given map[string]string) map[string]string {
	native := map[string]string{}
	for key, value := range given {
		native[nativeSetting(key)] = value
	}
	return native
}

// noteJujuSettings prints which of the settings belong to Juju and have no meaning here.
func (o *operator) noteJujuSettings(given map[string]string) {
	unused := slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(key string) bool {
		return !state.IsJujuSetting(key)
	})
	if len(unused) > 0 {
		o.note("note: %s: stored and shown, but without effect in bijou", strings.Join(unused, ", "))
	}
}

// readSettings reads settings from words. Each word is a setting KEY=VALUE, or names a YAML file of the form
// {KEY: VALUE}. Later words override earlier ones.
func readSettings(words []string) (map[string]string, error) {
	all := map[string]string{}
	for _, word := range words {
		if key, value, isPair := strings.Cut(word, "="); isPair {
			all[key] = value
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
		maps.Copy(all, file)
	}

	return all, nil
}
