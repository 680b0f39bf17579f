package juju

import (
	"bijou/state"
	"bijou/state/charm"
)

type getCmd struct {
	Service string `arg:"" help:"The service."`
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
