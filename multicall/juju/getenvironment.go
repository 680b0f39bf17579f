package juju

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state"
)

type getEnvironmentCmd struct {
	Key        string `arg:"" optional:"" help:"The only setting to print."`
	Format     string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print all values as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints the value of one setting or, without a key, all values that environmentValues returns. For a
// setting of Juju that is not set, it prints only a note.
func (c getEnvironmentCmd) Run(o *operator) error {
	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}

	values := environmentValues(e)
	unknown := e.UnknownSettings()
	if len(unknown) > 0 && (c.Key == "" || slices.Contains(unknown, c.Key)) {
		o.note("stored, but unknown to this version: %s", strings.Join(unknown, ", "))
	}
	if c.Key == "" {
		return o.encode(c.Format, values)
	}

	value, ok := values[c.Key]
	if !ok && state.IsJujuSetting(c.Key) {
		o.note("%s is not set, and has no effect here", c.Key)
		return nil
	}
	if !ok {
		return fmt.Errorf("unknown model setting %q; the settings are: %s",
			c.Key, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	_, err = fmt.Fprintln(o.streams.Out, value)
	return err
}
