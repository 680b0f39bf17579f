package juju

import (
	"fmt"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

type setCmd struct {
	Service string   `arg:"" help:"The service."`
	Options []string `arg:"" name:"option=value" help:"Options; VALUE may be @FILE."`
	waitFlags
}

// Run sets the options, all or none.
func (c setCmd) Run(o *operator) error {
	pairs, err := parsePairs(c.Options)
	if err != nil {
		return err
	}
	changes := map[string]any{}
	for option, value := range pairs {
		if changes[option], err = readValue(option, value); err != nil {
			return err
		}
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

func parsePairs(words []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, console.Usage(fmt.Errorf("%q is not of the form key=value", w))
		}
		if _, twice := pairs[key]; twice {
			return nil, console.Usage(fmt.Errorf("%q is given twice", key))
		}
		pairs[key] = value
	}
	return pairs, nil
}
