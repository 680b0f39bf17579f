package juju

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/status"
)

type machinesCmd struct {
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

type showMachineCmd struct {
	Machines []string `arg:"" optional:"" name:"machine" help:"The machines' ids; default: all."`
	Format   string   `enum:"yaml,json,tabular" default:"yaml" placeholder:"FORMAT" help:"yaml, json or tabular; default yaml."`
}

type machineEntry struct {
	jujuMachine `yaml:",inline"`
	Units       []string `yaml:"units" json:"units"`
}

// Run prints all machines, in a table one line each.
func (c machinesCmd) Run(o *operator) error { return showMachineCmd{Format: c.Format}.Run(o) }

// Run prints the machines, all that were named or none.
func (c showMachineCmd) Run(o *operator) error {
	s, err := readChosen(o, func(v *state.View) (status.Status, error) { return status.Read(v, status.Options{Now: time.Now()}) })
	if err != nil {
		return err
	}
	o.noteDamage(s.Damage)
	for _, id := range c.Machines {
		if _, ok := s.Machines[id]; !ok {
			return console.Hint(fmt.Errorf("machine %q not found", id), "juju machines lists them")
		}
	}
	maps.DeleteFunc(s.Machines, func(id string, _ status.Machine) bool { return len(c.Machines) > 0 && !slices.Contains(c.Machines, id) })
	entries := machineEntries(s)
	return o.printTable(c.Format, map[string]any{"machines": entries}, machineTable(s, entries))
}

func machineEntries(s status.Status) map[string]machineEntry {
	entries := map[string]machineEntry{}
	for id, m := range s.Machines {
		entries[id] = machineEntry{newJujuMachine(m), []string{}}
	}
	units := allUnits(s)
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		if m, ok := entries[units[name].Machine]; ok {
			m.Units = append(m.Units, name)
			entries[units[name].Machine] = m
		}
	}
	return entries
}

type addMachineCmd struct {
	Placement   string   `arg:"" optional:"" help:"Where, as PROVIDER:WHERE: ssh:user@host or ssh:user@host:port."`
	Number      int      `short:"n" default:"1" placeholder:"N" help:"How many machines; default 1."`
	Series      string   `aliases:"base" placeholder:"SERIES" help:"Their series, or base (ubuntu@24.04); default: the environment's."`
	Constraints []string `sep:"none" placeholder:"\"K=V ...\"" help:"What they have to satisfy, over the environment's."`
	Provisioner bool     `help:"Their agents host a provisioner, too: one takes over when the leader's host dies."`
}

// Run adds the machines and prints their ids.
func (c addMachineCmd) Run(o *operator) error {
	if err := checkCount(c.Number, "machine"); err != nil {
		return err
	}
	if c.Series = charm.SeriesOfBase(c.Series); c.Series != "" {
		if err := charm.CheckSeries(c.Series); err != nil {
			return console.Usage(err)
		}
	}
	if c.Placement != "" && c.Number != 1 {
		return console.Usage(fmt.Errorf("cannot add %d machines at %q: it is one place", c.Number, c.Placement))
	}
	spec, err := c.machineSpec()
	if err != nil {
		return err
	}
	return o.openChosen(func(s *state.State) error {
		machines, err := s.AddMachines(o.ctx, c.Number, spec)
		for _, m := range machines {
			fmt.Fprintln(o.streams.Out, m.ID)
		}
		if errors.Is(err, state.ErrOtherProvider) {
			return console.Hint(err, "juju get-environment provider says whose machines it has; juju bootstrap --provider NAME makes an environment of another")
		}
		return err
	})
}

func (c addMachineCmd) machineSpec() (state.Machine, error) {
	asked, err := parseConstraints(c.Constraints...)
	spec := state.Machine{Series: c.Series, Constraints: asked, Placement: c.Placement}
	if c.Provisioner {
		spec.Jobs = []string{state.JobManage, state.JobUnits}
	}
	return spec, err
}

type retryProvisioningCmd struct {
	Machines    []string `arg:"" name:"machine" help:"The machines' ids."`
	Constraints *string  `placeholder:"\"K=V ...\"" help:"What they have to satisfy from now on, instead of all they had to."`
}

// Run marks the machines, all or none. A machine that needs no retry is a line of output,
// not an error.
func (c retryProvisioningCmd) Run(o *operator) error {
	var replace *constraints.Value
	if c.Constraints != nil {
		asked, err := parseConstraints(*c.Constraints)
		if err != nil {
			return err
		}
		replace = &asked
	}
	var output string
	err := o.update(func(tx *state.Tx) error {
		output = ""
		var refused []error
		for _, id := range c.Machines {
			err := tx.ResolveMachine(id, replace)
			switch {
			case errors.Is(err, state.ErrNotInError):
				output += err.Error() + "\n"
			case err == nil:
				output += fmt.Sprintf("machine %s is marked as resolved\n", id)
			default:
				refused = append(refused, err)
			}
		}
		return joinErrors(refused)
	})
	if err == nil {
		fmt.Fprint(o.streams.Out, output)
	}
	return err
}

// placementFlags say how many new units there are to be, and where.
type placementFlags struct {
	NumUnits int    `short:"n" default:"1" placeholder:"N" help:"How many units; default 1."`
	To       string `placeholder:"MACHINE" help:"Put them on this machine, or on one of their own: \"new\"; as many with commas as there are units: each on its own."`
}

func (p placementFlags) check() error {
	if n := len(p.placements()); n > 1 && (n != p.NumUnits || strings.Contains(","+p.To+",", ",,")) {
		return console.Usage(fmt.Errorf("--to names %d machines for %s: want one for all, or one for each", n, formatCount(p.NumUnits, "unit")))
	}
	return checkCount(p.NumUnits, "unit")
}

// maxAtOnce bounds the units or machines that one command adds: a slip of the finger is
// not to fill the store.
const maxAtOnce = 10_000

func checkCount(n int, thing string) error {
	switch {
	case n < 1:
		return console.Usage(fmt.Errorf("cannot add %d %ss", n, thing))
	case n > maxAtOnce:
		return console.Usage(fmt.Errorf("cannot add %s at once: %d is the most", formatCount(n, thing), maxAtOnce))
	}
	return nil
}

func (p placementFlags) placements() (at []state.Placement) {
	for machine := range strings.SplitSeq(p.To, ",") {
		at = append(at, state.Placement{Machine: machine})
	}
	return at
}

type addUnitCmd struct {
	Service string `arg:"" help:"The service."`
	placementFlags
	waitFlags
}

// Run adds the units and prints their names.
func (c addUnitCmd) Run(o *operator) error {
	if err := c.check(); err != nil {
		return err
	}
	return o.openChosen(func(s *state.State) error {
		units, err := s.AddUnits(o.ctx, c.Service, c.NumUnits, c.placements()...)
		for _, u := range units {
			fmt.Fprintln(o.streams.Out, u.Name)
			o.affect(untilIdle, u.Name)
		}
		return err
	})
}
