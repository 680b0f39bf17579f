package juju

import (
	"encoding/json"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/number"
	"bijou/state/status"
)

type showApplicationCmd struct {
	Services []string `arg:"" name:"service" help:"The services."`
	Format   string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints what status --format json has of the services, all or none.
func (c showApplicationCmd) Run(o *operator) error {
	s, err := readChosen(o, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now(), Globs: c.Services})
	})
	if err != nil {
		return err
	}

	o.noteDamage(s.Damage)
	shown := map[string]jujuApplication{}
	for _, name := range c.Services {
		if _, there := s.Services[name]; !there {
			return console.Hint(fmt.Errorf("service %q not found", name), "juju status lists them")
		}
		shown[name] = newJujuStatus(s).Applications[name]
	}

	var plain any // with JSON's keys in YAML, too
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	if err := number.Unmarshal(text, &plain); err != nil {
		return err
	}

	return o.encode(c.Format, number.ForPrinting(plain))
}
