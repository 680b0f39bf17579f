package juju

import (
	"encoding/json"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/number"
	"bijou/state/status"
)

type showApplicationCmd struct {
	Services   []string `arg:"" name:"application" help:"The applications."`
	Format     string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Print as yaml or json; default yaml."`
	outputFlag `embed:""`
}

// Run prints all of the services, or none, as status --format json does, with the charms to which they can return.
func (c showApplicationCmd) Run(o *operator) error {
	kept := map[string][]state.KeptCharm{}
	s, err := readChosen(o, func(v *state.View) (status.Status, error) {
		for _, name := range c.Services {
			charms, err := v.KeptCharms(name)
			// A missing application gets its error below, from the status.
			if state.IgnoreNotFound(err) != nil {
				return status.Status{}, err
			}
			kept[name] = charms
		}

		return status.Read(v, status.Options{Now: time.Now(), Globs: c.Services})
	})
	if err != nil {
		return err
	}

	o.noteDamage(s.Damage)
	shown := map[string]shownApplication{}
	for _, name := range c.Services {
		if _, exists := s.Services[name]; !exists {
			return console.Hint(fmt.Errorf("application %q not found", name), "juju status lists them")
		}
		shown[name] = shownApplication{newJujuStatus(s).Applications[name], newKeptCharms(kept[name])}
	}

	// The detour through JSON gives YAML the same keys.
	var plain any
	encoded, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	if err := number.Unmarshal(encoded, &plain); err != nil {
		return err
	}

	return o.encode(c.Format, number.ForPrinting(plain))
}

// shownApplication is a service as in status, with the charms to which it can return.
type shownApplication struct {
	jujuApplication
	Kept []keptCharm `json:"kept-charms,omitempty"`
}

type keptCharm struct {
	Charm    string    `json:"charm"`
	Revision int       `json:"charm-rev"`
	Until    time.Time `json:"until,omitzero"`
}

// newKeptCharms returns the kept charms as show-application prints them.
func newKeptCharms(kept []state.KeptCharm) (shown []keptCharm) {
	for _, k := range kept {
		// A URL that cannot be parsed is shown unchanged, with revision 0.
		url, _ := charm.ParseURL(k.Charm)
		shown = append(shown, keptCharm{
			Charm:    charm.ShortURL(k.Charm),
			Revision: url.Revision,
			Until:    k.Until,
		})
	}
	return shown
}
