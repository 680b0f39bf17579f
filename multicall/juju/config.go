package juju

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/status"
)

type configCmd struct {
	Service string   `arg:"" help:"The service."`
	Words   []string `arg:"" optional:"" name:"option" help:"Print this option's value only; with OPTION=VALUE, or OPTION=@FILE, set options."`
	Format  string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
	File    []string `sep:"none" placeholder:"FILE" help:"Set what this YAML file says, as deploy --config takes it; what is given by name wins."`
	resetFlags
	waitFlags
}

type serviceSettings struct {
	Service  string             `yaml:"service" json:"application"`
	Charm    string             `yaml:"charm" json:"charm"`
	Settings map[string]setting `yaml:"settings" json:"settings"`
	Juju     map[string]setting `yaml:"-" json:"application-config"` // what Juju keeps of it beside the charm's options
}

type setting struct {
	Type        string `yaml:"type" json:"type"`
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	Value       any    `yaml:"value" json:"value,omitempty"`
	Default     bool   `yaml:"default,omitempty" json:"-"` // the value is the charm's default
	Source      string `yaml:"-" json:"source"`            // the same, in Juju 3's words: default or user
}

// Run prints every option, or the value of one, or does what set and unset do.
func (c configCmd) Run(o *operator) error {
	if c.asks(c.Words) && len(c.File) == 0 {
		return c.show(o)
	}
	return setCmd{Service: c.Service, Options: c.Words, Config: c.File, reset: c.Reset}.Run(o)
}

func (c configCmd) show(o *operator) error {
	doc, err := readChosen(o, func(v *state.View) (doc serviceSettings, err error) {
		s, err := v.Service(c.Service)
		if err != nil {
			return doc, err
		}
		ch, err := v.Charm(s.Charm)
		if err != nil {
			return doc, err
		}
		set, err := v.Config(c.Service)
		trust := setting{Type: "bool", Description: "Do its units get the cloud's credential", Value: s.Trusted, Source: settingSource(s.Trusted)}
		return serviceSettings{s.Name, s.Charm, mergeSettings(&ch.Config, set.Values), map[string]setting{"trust": trust}}, err
	})
	if err != nil {
		return err
	}
	if len(c.Words) == 0 {
		return o.encode(c.Format, doc)
	}
	found, ok := doc.Settings[c.Words[0]]
	if !ok {
		return console.Hint(fmt.Errorf("service %q has no option %q", c.Service, c.Words[0]), "juju get "+c.Service+" shows all")
	}
	if found.Value != nil {
		_, err = fmt.Fprintln(o.streams.Out, found.Value)
	}
	return err
}

func mergeSettings(schema *charm.Config, set map[string]any) map[string]setting {
	all := map[string]setting{}
	effective := schema.Effective(set)
	for name, option := range schema.Options {
		_, isSet := set[name]
		all[name] = setting{
			Type: string(option.Type), Description: option.Description, Value: effective[name], Default: !isSet,
			Source: settingSource(isSet),
		}
	}
	return all
}

func settingSource(isSet bool) string {
	if isSet {
		return "user"
	}
	return "default"
}

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

type unsetCmd struct {
	Service string   `arg:"" help:"The service."`
	Options []string `arg:"" name:"option" help:"The options; each goes back to the charm's default."`
	waitFlags
}

// Run puts the options back, all or none.
func (c unsetCmd) Run(o *operator) error {
	return setCmd{Service: c.Service, reset: c.Options}.Run(o)
}

type exposeCmd struct {
	Service string `arg:"" help:"The service."`
}

// Run marks the service; one that is exposed already stays so.
func (c exposeCmd) Run(o *operator) error { return c.setExposed(o, true, "is") }

func (c exposeCmd) setExposed(o *operator, exposed bool, is string) error {
	err := o.update(func(tx *state.Tx) error { return tx.SetExposed(c.Service, exposed) })
	if err == nil {
		o.note("%s %s marked as to be reached from outside; no firewall is changed by that", c.Service, is)
	}
	return err
}

type unexposeCmd struct{ exposeCmd }

// Run takes the mark away; a service without it stays so.
func (c unexposeCmd) Run(o *operator) error { return c.setExposed(o, false, "is not") }

type getConstraintsCmd struct {
	Service string `arg:"" optional:"" help:"Of this service, instead of the environment."`
	Format  string `enum:"text,yaml,json" default:"text" placeholder:"FORMAT" help:"text, yaml or json; default text."`
}

// Run prints the constraints; as text, nothing if there are none.
func (c getConstraintsCmd) Run(o *operator) error {
	set, err := readChosen(o, func(v *state.View) (constraints.Value, error) {
		if c.Service != "" {
			s, err := v.Service(c.Service)
			return s.Constraints, err
		}
		e, err := v.Environment()
		return e.Constraints, err
	})
	switch {
	case err != nil:
		return err
	case c.Format == "json" && slices.Contains(o.args, "model-constraints"):
		return o.encode("json", struct { // Juju 3's name of cpu-cores
			constraints.Value
			CPUCores *uint64 `json:"cpu-cores,omitempty"`
			Cores    *uint64 `json:"cores,omitempty"`
		}{set, nil, set.CPUCores})
	case c.Format != "text":
		return o.encode(c.Format, set)
	case set != constraints.Value{}:
		_, err = fmt.Fprintln(o.streams.Out, set)
	}
	return err
}

const constraintsHelp = `Constraints: mem and root-disk (a number with M, G, T or P; 1.5G), cpu-cores (or cores), cpu-power (100 is one
EC2 unit), arch, container, tags (a,b,^c: with a and b, not c), or an instance-type instead of sizes.
An empty value is explicitly none, whatever the environment says.
`

func parseConstraints(words ...string) (constraints.Value, error) {
	v, err := constraints.Parse(strings.Join(words, " "))
	if err != nil {
		return constraints.Value{}, console.Usage(err)
	}
	return v, nil
}

type setConstraintsCmd struct {
	Values  []string `arg:"" optional:"" name:"key=value" help:"All constraints there are to be; none: no constraints."`
	Service string   `placeholder:"SERVICE" help:"Of this service, instead of the environment."`
}

// Run replaces the constraints.
func (c setConstraintsCmd) Run(o *operator) error {
	v, err := parseConstraints(c.Values...)
	if err != nil {
		return err
	}
	return o.update(func(tx *state.Tx) error {
		if c.Service == "" {
			return tx.SetConstraints(v)
		}
		return tx.SetServiceConstraints(c.Service, v)
	})
}
