package juju

import (
	"fmt"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

type setCmd struct {
	Service string   `arg:"" help:"The service."`
	Options []string `arg:"" name:"option=value" help:"Options; VALUE may be @FILE."`
}

// Help shows how it is used.
func (setCmd) Help() string {
	return `The units run config-changed.

Examples:
  juju set wordpress blog-title="My blog" engine=nginx
  juju set apache certificate=@cert.pem`
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
	var changed []string
	err := o.update(func(tx *state.Tx) (err error) {
		changed, err = tx.SetConfig(service, changes)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(changed) == 0:
		o.note("%s has these values already: nothing follows", service)
	default:
		o.note("%s: %s changed; its units run config-changed", service, strings.Join(changed, ", "))
	}
	return nil
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

type getCmd struct {
	Service string `arg:"" help:"The service."`
}

// Help shows how it is used.
func (getCmd) Help() string {
	return `Examples:
  juju get wordpress`
}

type setting struct {
	Type        string `yaml:"type"`
	Description string `yaml:"description,omitempty"`
	Value       any    `yaml:"value"`
	Default     bool   `yaml:"default,omitempty"` // the value is the charm's default
}

// Run prints every option as YAML.
func (c getCmd) Run(o *operator) error {
	var doc struct {
		Service  string             `yaml:"service"`
		Charm    string             `yaml:"charm"`
		Settings map[string]setting `yaml:"settings"`
	}
	err := o.view(func(v *state.View) error {
		s, err := v.Service(c.Service)
		if err != nil {
			return err
		}
		ch, err := v.Charm(s.Charm)
		if err != nil {
			return err
		}
		set, err := v.Config(c.Service)
		doc.Service, doc.Charm, doc.Settings = s.Name, s.Charm, mergeSettings(&ch.Config, set.Values)
		return err
	})
	if err != nil {
		return err
	}
	return o.encode("yaml", doc)
}

func mergeSettings(schema *charm.Config, set map[string]any) map[string]setting {
	all := map[string]setting{}
	effective := schema.Effective(set)
	for name, option := range schema.Options {
		_, isSet := set[name]
		all[name] = setting{
			Type: string(option.Type), Description: option.Description, Value: effective[name], Default: !isSet,
		}
	}
	return all
}
