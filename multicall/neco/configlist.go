package neco

import (
	"maps"
	"slices"

	"bijou/multicall/console"
	"bijou/updater/record"
)

type configListCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
}

// Run prints all settings with their values or defaults. It does not show values that may be secrets.
func (c configListCmd) Run(o *operator) error {
	stored, err := o.readSettings()
	if err != nil {
		return err
	}

	table := console.NewTable("KEY", "VALUE", "SET", "WHAT IT IS")
	values := map[string]string{}
	for _, s := range record.Settings() {
		value := s.Default
		mark := ""
		if storedValue, isStored := stored[s.Key]; isStored {
			value = s.Shown(storedValue)
			mark = "yes"
		}
		values[s.Key] = value
		table.Add(console.Plain, s.Key, value, mark, s.Help)
		delete(stored, s.Key)
	}

	// Only unknown keys are left.
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		// The value of an unknown key may be a secret.
		values[key] = "(not shown)"
		table.Add(console.Plain, key, values[key], "yes", "stored, but unknown to this version")
	}

	return o.printTable(c.Format, values, table)
}
