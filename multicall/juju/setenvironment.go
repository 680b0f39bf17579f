package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/state"
)

type setEnvironmentCmd struct {
	Values []string `arg:"" name:"key=value" help:"Settings; an empty value resets to the default."`
}

// Run sets all of the values, or none. An empty value resets its setting.
func (c setEnvironmentCmd) Run(o *operator) error {
	pairs, err := parsePairs(c.Values)
	if err != nil {
		return err
	}

	pairs = nativeSettings(pairs)   // with bijou's own keys instead of Juju's keys
	given := map[string]string{}    // only values that are not empty
	changes := map[string]*string{} // nil resets a setting
	for key, value := range pairs {
		changes[key] = nil
		if value != "" {
			given[key] = value
			changes[key] = &value
		}
	}

	var changed []string
	err = o.update(func(tx *state.Tx) error {
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if err := o.parts.Providers.CheckSettings(env.Provider, given); err != nil {
			return fmt.Errorf("cannot change the model's settings: %w", err)
		}

		changed = nil
		for key := range changes {
			// Both are empty for a setting that was not set and is reset.
			if env.Config[key] != given[key] {
				changed = append(changed, key)
			}
		}
		return tx.SetEnvironment(changes)
	})

	switch {
	case err != nil:
		return err
	case len(changed) == 0:
		o.note("the model already has these values; nothing to do")
	default:
		slices.Sort(changed)
		o.note("the model's %s changed", strings.Join(changed, ", "))
	}
	o.noteJujuSettings(given) // prints which settings have no effect in bijou
	return nil
}
