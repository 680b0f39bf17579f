package juju

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

type setCmd struct {
	Service string   `arg:"" name:"application" help:"The application."`
	Options []string `arg:"" optional:"" name:"option=value" help:"Options; VALUE can be @FILE, and @- is stdin."`
	Config  []string `sep:"none" placeholder:"FILE" help:"Set the options in this YAML file, in the form of deploy --config; - is stdin, and options on the command line override."`
	reset   []string
	waitFlags
}

// Run sets the options of the command line and of files, and resets the options in c.reset. It changes all of
// these options, or none.
func (c setCmd) Run(o *operator) error {
	ch, err := readChosen(o, func(v *state.View) (state.Charm, error) { return charmOf(v, c.Service) })
	if err != nil {
		return err
	}

	reader := o.newOptionReader(&ch.Config, c.Service)
	changes, err := reader.readWords(c.Config)
	if err != nil {
		return err
	}
	pairs, err := reader.readPairs(c.Options)
	if err != nil {
		return err
	}
	maps.Copy(changes, pairs) // they override values in files

	// The value nil resets an option. A reset contradicts a value on the command line, but a value in a file
	// overrides the reset.
	for _, option := range c.reset {
		if _, onCommandLine := pairs[option]; onCommandLine {
			return console.Usage(fmt.Errorf("%q is both set and reset", option))
		}
		if _, inFile := changes[option]; !inFile {
			changes[option] = nil
		}
	}

	if len(changes) == 0 {
		return console.Usage(errors.New("no option given"))
	}

	return setConfig(o, c.Service, changes)
}

// setConfig changes a service's options, and prints which options have changed. The value nil resets an option.
func setConfig(o *operator, service string, changes map[string]any) error {
	return o.openChosen(func(s *state.State) error {
		var changed []string
		err := s.Update(o.ctx, func(tx *state.Tx) (err error) {
			changed, err = setOptions(tx, service, changes)
			return err
		})

		// With --wait, the command waits for the units even if no option has changed.
		o.noteAffected(untilIdle, service)
		switch {
		case err != nil:
			return err
		case len(changed) == 0:
			o.note("%s already has these values; nothing to do", service)
			return nil
		}

		o.note("%s: %s changed; its units run config-changed", service, strings.Join(changed, ", "))
		// Print only errors of the service's own units that are alive, and no errors of relations.
		o.noteErrors(s, []string{service}, func(name string, u status.Unit, relation string) bool {
			return strings.HasPrefix(name, service+"/") && u.Life == "" && relation == ""
		})
		return nil
	})
}
