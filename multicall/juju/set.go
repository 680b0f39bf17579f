package juju

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

type setCmd struct {
	Service string   `arg:"" help:"The service."`
	Options []string `arg:"" optional:"" name:"option=value" help:"Options; VALUE may be @FILE."`
	Config  []string `sep:"none" placeholder:"FILE" help:"Set what this YAML file says, as deploy --config takes it; what is given by name wins."`
	reset   []string
	waitFlags
}

// Run sets the options, all or none.
func (c setCmd) Run(o *operator) error {
	changes := map[string]any{}
	for _, option := range c.reset {
		changes[option] = nil
	}

	if len(c.Config) > 0 {
		ch, err := readChosen(o, func(v *state.View) (state.Charm, error) { return charmOf(v, c.Service) })
		if err != nil {
			return err
		}
		given, err := readOptions(c.Config, &ch.Config, c.Service)
		if err != nil {
			return err
		}
		maps.Copy(changes, given)
	}

	pairs, err := parsePairs(c.Options)
	if err != nil {
		return err
	}

	for option, value := range pairs {
		if slices.Contains(c.reset, option) {
			return console.Usage(fmt.Errorf("%q is both set and put back", option))
		}
		if changes[option], err = readValue(option, value); err != nil {
			return err
		}
	}

	if len(changes) == 0 {
		return console.Usage(errors.New("no option is given"))
	}

	return setConfig(o, c.Service, changes)
}

func setConfig(o *operator, service string, changes map[string]any) error {
	return o.openChosen(func(s *state.State) error {
		var changed []string
		err := s.Update(o.ctx, func(tx *state.Tx) (err error) {
			changed, err = tx.SetConfig(service, changes)
			return err
		})

		o.affect(untilIdle, service)
		switch {
		case err != nil:
			return err
		case len(changed) == 0:
			o.note("%s has these values already: nothing follows", service)
			return nil
		}

		o.note("%s: %s changed; its units run config-changed", service, strings.Join(changed, ", "))
		o.noteErrors(s, []string{service}, func(name string, u status.Unit, relation string) bool {
			return strings.HasPrefix(name, service+"/") && u.Life == "" && relation == ""
		})
		return nil
	})
}

// readValue returns the value itself, or the content of the file that @FILE names.
func readValue(option, value string) (string, error) {
	path, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	data, err := readFile(path, state.MaxSetting)
	if err != nil {
		return "", fmt.Errorf("cannot read the value of %q: %w", option, err)
	}

	return string(data), nil
}
