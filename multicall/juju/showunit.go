package juju

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/sanitize"
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
	all, err := readChosen(o, func(v *state.View) (map[string]status.UnitDetail, error) {
		all := map[string]status.UnitDetail{}
		for _, asked := range c.Units {
			name, err := findUnitName(v, asked)
			if err != nil {
				return nil, err
			}
			d, err := status.ReadUnit(v, name, status.Options{Now: time.Now()}, o.parts.Agents.Owed)
			if err != nil {
				return nil, err
			}
			d.Hooks = d.Hooks[max(0, len(d.Hooks)-maxShownHooks):]
			if all[name] = d; !c.narrow(d.Relations) {
				return nil, console.Hint(fmt.Errorf("unit %q is in no relation with %q", name, c.Related), "juju show-unit "+name+" shows all")
			}
		}
		return all, nil
	})
	if err != nil {
		return err
	}
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

type showApplicationCmd struct {
	Services []string `arg:"" name:"service" help:"The services."`
	Format   string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints what status --format json has of the services, all or none.
func (c showApplicationCmd) Run(o *operator) error {
	s, err := readChosen(o, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now(), Scope: scopeOf(c.Services)})
	})
	if err != nil {
		return err
	}
	all := newJujuStatus(s).Applications
	shown := map[string]jujuApplication{}
	for _, name := range c.Services {
		if _, ok := all[name]; !ok {
			return console.Hint(fmt.Errorf("service %q not found", name), "juju status lists them")
		}
		shown[name] = all[name]
	}
	if c.Format == "json" {
		return o.encode("json", shown)
	}
	var plain any // with JSON's keys
	text, err := json.Marshal(shown)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	return errors.Join(err, o.encode("yaml", plain))
}

type showStatusLogCmd struct {
	Unit   string `arg:"" help:"The unit."`
	Count  int    `short:"n" default:"20" placeholder:"N" help:"At most so many, the last ones; default 20."`
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

type pastStatus struct {
	status.Info `yaml:",inline"`
	Type        string `json:"type" yaml:"type"`
}

// Run prints what the unit's agent has done, and what its charm has said, as the last hooks have it.
func (c showStatusLogCmd) Run(o *operator) error {
	runs, err := readChosen(o, func(v *state.View) ([]state.HookRun, error) {
		if _, err := v.Unit(c.Unit); err != nil {
			return nil, err
		}
		return v.HookRuns(c.Unit)
	})
	if err != nil {
		return err
	}
	var past []pastStatus
	add := func(of, word, message string, since time.Time) {
		past = append(past, pastStatus{status.Info{Current: word, Message: sanitize.HideSecrets(message), Since: since}, of})
	}
	for _, r := range runs {
		add("juju-unit", "executing", "running "+r.Hook, r.Started)
		if w := r.Said; w != nil {
			add("workload", w.Status, w.Message, w.Since)
		}
		if r.Failure != "" {
			add("workload", "error", "hook failed: "+r.Hook+": "+r.Failure, r.Ended)
		}
		add("juju-unit", "idle", "", r.Ended)
	}
	past = past[max(0, len(past)-max(0, c.Count)):]
	t := console.NewTable("TIME", "TYPE", "STATUS", "MESSAGE")
	for _, p := range past {
		t.Add(stateColour(p.Current), p.Since.Local().Format(time.DateTime), p.Type, p.Current, sanitize.FirstLine(p.Message))
	}
	return o.printTable(c.Format, past, t)
}
