package juju

import (
	"fmt"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/logs"
	"bijou/state/status"
)

type showUnitCmd struct {
	Units       []string `arg:"" name:"unit" help:"The units; APPLICATION/leader is the leader."`
	App         bool     `help:"Show only the settings that applications have written in relations, not those of units."`
	Endpoint    string   `placeholder:"NAME" help:"Show only relations of this endpoint."`
	Related     string   `name:"related-unit" placeholder:"UNIT" help:"Show only the settings that this unit has written in relations."`
	Format      string   `enum:"auto,text,yaml,smart,json" default:"auto" placeholder:"FORMAT" help:"Print as text, yaml or json; default text on a terminal, else yaml."`
	outputFlag  `embed:""`
	UTC         bool `name:"utc" help:"Show times in UTC."`
	colourFlags `embed:""`
}

// maxShownHooks is how many hooks show-unit shows. juju hook-history shows more.
const maxShownHooks = 10

// shownUnit is a unit as show-unit shows it. view and log are only for the text format.
type shownUnit struct {
	status.UnitDetail
	view status.Unit
	log  []logs.Line // the last lines of the unit's log
}

// Run prints the given units. If one of them cannot be shown, it prints none of them.
func (c showUnitCmd) Run(o *operator) error {
	if c.UTC {
		// This process shows only the units, and then exits.
		time.Local = time.UTC
	}

	var damage []string
	units, err := readChosen(o, func(v *state.View) (units map[string]shownUnit, err error) {
		units, damage, err = c.read(v, o)
		return units, err
	})
	if err != nil {
		return err
	}

	o.noteDamage(damage)
	// The format auto is text on a terminal, and YAML elsewhere.
	asText := c.Format == "text" || c.Format == "auto" && console.IsTerminal(o.streams.Out)
	printed, err := c.render(o, units, asText)
	if err != nil {
		return err
	}

	_, err = o.streams.Out.Write(printed)
	return err
}

// read returns the given units by name. damage describes the records that are missing or do not decode.
func (c showUnitCmd) read(v *state.View, o *operator) (units map[string]shownUnit, damage []string, err error) {
	units = map[string]shownUnit{}
	var names []string
	for _, word := range c.Units {
		name, err := findUnitName(v, word)
		if err != nil {
			return nil, nil, err
		}
		units[name], err = c.readUnit(v, o, name)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, name)
	}

	// One read of the status gives the views of all units.
	s, err := status.Read(v, status.Options{Now: time.Now(), Globs: names})
	if err != nil {
		return nil, nil, err
	}

	for name, u := range allUnits(s) {
		shown := units[name]
		shown.view = u
		units[name] = shown
	}
	return units, s.Damage, nil
}

// readUnit reads the details of one unit, with only its last hooks and the relations that the flags select. It
// also reads the unit's last log lines. It leaves the view empty.
func (c showUnitCmd) readUnit(v *state.View, o *operator, name string) (shownUnit, error) {
	// A unit that does not exist gets its own error, without the prefix below.
	if _, err := v.Unit(name); err != nil {
		return shownUnit{}, err
	}

	// If no hook runs, Owed computes the next step of the unit's agent.
	detail, err := status.ReadUnit(v, name, status.Options{Now: time.Now()}, o.parts.Owed)
	if err != nil {
		return shownUnit{}, fmt.Errorf("cannot show unit %q: %w", name, err)
	}

	detail.Hooks = detail.Hooks[max(0, len(detail.Hooks)-maxShownHooks):]
	if err := c.narrow(name, &detail); err != nil {
		return shownUnit{}, err
	}

	lines, err := logs.Read(v, logs.Filter{Sources: []string{name}, Last: maxShownLines})
	if err != nil {
		return shownUnit{}, err
	}

	return shownUnit{UnitDetail: detail, log: lines}, nil
}

// render returns the units as text, or in the chosen format.
func (c showUnitCmd) render(o *operator, units map[string]shownUnit, asText bool) ([]byte, error) {
	if asText {
		return c.renderText(units, c.canColour(o.streams.Out))
	}

	details := map[string]status.UnitDetail{}
	for name, u := range units {
		details[name] = u.UnitDetail
	}
	return encodeAs(c.Format, details)
}

// narrow removes from d all relations and related units that the flags do not select, and with --app also the
// settings of the unit itself. name is the unit of d. narrow returns an error if --endpoint or --related-unit
// selects nothing.
func (c showUnitCmd) narrow(name string, d *status.UnitDetail) error {
	if c.Endpoint != "" {
		var endpoints []string
		for _, r := range d.Relations {
			endpoints = append(endpoints, r.Endpoint)
		}
		d.Relations = slices.DeleteFunc(d.Relations, func(r status.RelationDetail) bool { return r.Endpoint != c.Endpoint })
		if len(d.Relations) == 0 {
			return console.Hint(fmt.Errorf("unit %q has no relation at endpoint %q", name, c.Endpoint),
				listHint("endpoints with relations", endpoints))
		}
	}

	if !c.narrowUnits(d.Relations) {
		return console.Hint(fmt.Errorf("unit %q is in no relation with %q", name, c.Related),
			"juju show-unit "+name+" shows all")
	}
	return nil
}

// narrowUnits removes the related units that --related-unit does not select. With --app, it removes all related
// units, and the settings of the unit itself. found reports whether there was a related unit of that name, and is
// true without --related-unit.
func (c showUnitCmd) narrowUnits(relations []status.RelationDetail) (found bool) {
	for i := range relations {
		for name := range relations[i].RelatedUnits {
			isRelated := name == c.Related
			found = found || isRelated
			if c.App || c.Related != "" && !isRelated {
				delete(relations[i].RelatedUnits, name)
			}
		}

		if c.App {
			relations[i].LocalUnit.Data = map[string]string{}
		}
	}

	return found || c.Related == ""
}
