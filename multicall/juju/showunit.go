package juju

import (
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/status"
)

type showUnitCmd struct {
	Units   []string `arg:"" name:"unit" help:"The units; SERVICE/leader is the one that leads."`
	App     bool     `help:"Of relations only what services have said, not their units."`
	Related string   `name:"related-unit" placeholder:"UNIT" help:"Of relations only what this unit has said."`
	Format  string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// maxShownHooks is how many hooks show-unit shows: juju hook-history has more.
const maxShownHooks = 10

// Run prints the units, all or none.
func (c showUnitCmd) Run(o *operator) error {
	var damage []string
	all, err := readChosen(o, func(v *state.View) (map[string]status.UnitDetail, error) {
		all := map[string]status.UnitDetail{}
		var names []string

		for _, asked := range c.Units {
			name, err := findUnitName(v, asked)
			if err != nil {
				return nil, err
			}
			if _, err := v.Unit(name); err != nil {
				return nil, err
			}

			d, err := status.ReadUnit(v, name, status.Options{Now: time.Now()}, o.parts.Owed)
			if err != nil {
				return nil, fmt.Errorf("cannot show unit %q: %w", name, err)
			}

			d.Hooks = d.Hooks[max(0, len(d.Hooks)-maxShownHooks):]
			if all[name] = d; !c.narrow(d.Relations) {
				return nil, console.Hint(fmt.Errorf("unit %q is in no relation with %q", name, c.Related),
					"juju show-unit "+name+" shows all")
			}
			names = append(names, name)
		}

		s, err := status.Read(v, status.Options{Now: time.Now(), Globs: names})
		if err != nil {
			return nil, err
		}

		damage = s.Damage
		return all, nil
	})
	if err != nil {
		return err
	}

	o.noteDamage(damage)
	return o.encode(c.Format, all)
}

// narrow leaves in relations what is asked for, and reports whether it is there.
func (c showUnitCmd) narrow(relations []status.RelationDetail) (found bool) {
	for i := range relations {
		for name := range relations[i].RelatedUnits {
			found = found || name == c.Related
			if c.App || c.Related != "" && name != c.Related {
				delete(relations[i].RelatedUnits, name)
			}
		}

		if c.App {
			relations[i].LocalUnit.Data = map[string]string{}
		}
	}

	return found || c.Related == ""
}
