package juju

import (
	"strconv"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

type machinesCmd struct {
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

type machineList struct {
	Machines map[string]machineEntry `yaml:"machines" json:"machines"`
}

type machineEntry struct {
	status.Machine `yaml:",inline"`
	Units          []string `yaml:"units" json:"units"`
}

// Run prints all machines, in a table one line each.
func (c machinesCmd) Run(o *operator) error {
	if c.Format == "tabular" {
		return c.printTable(o)
	}
	s, err := readChosen(o, func(v *state.View) (status.Status, error) { return status.Read(v, status.Options{Now: time.Now()}) })
	if err != nil {
		return err
	}
	return o.encode(c.Format, newMachineList(s))
}

func newMachineList(s status.Status) machineList {
	list := machineList{Machines: map[string]machineEntry{}}
	for id, m := range s.Machines {
		list.Machines[id] = machineEntry{Machine: m, Units: []string{}}
	}
	for _, service := range s.Services {
		for name, u := range service.Units {
			if m, ok := list.Machines[u.Machine]; ok {
				m.Units = append(m.Units, name)
				list.Machines[u.Machine] = m
			}
		}
	}
	for _, m := range list.Machines {
		charm.SortUnits(m.Units)
	}
	return list
}

func (machinesCmd) printTable(o *operator) error {
	return o.view(func(v *state.View) error {
		machines, err := v.Machines()
		if err != nil {
			return err
		}
		t := console.NewTable("MACHINE", "STATE", "ADDRESS", "INSTANCE", "SERIES", "UNITS", "CONSTRAINTS", "MESSAGE")
		for _, m := range machines {
			units, err := v.MachineUnits(m.ID)
			if err != nil {
				return err
			}
			shown, err := machineState(v, m)
			if err != nil {
				return err
			}
			t.Add(stateColour(shown), m.ID, shown, m.Addresses.Public, m.InstanceID, m.Series, strconv.Itoa(len(units)),
				m.Constraints.String(), machineMessage(status.Machine{Message: m.Message, NextRetry: m.RetryAt}))
		}
		return t.Write(o.streams.Out, console.CanColour(o.streams.Out))
	})
}

// machineState is a dying machine's life, else its status; one whose agent is gone is
// down.
func machineState(v *state.View, m state.Machine) (string, error) {
	present, err := v.IsPresent(state.MachineAgent(m.ID))
	switch {
	case err != nil:
		return "", err
	case m.Life != state.Alive:
		return string(m.Life), nil
	case m.Status == state.MachineRunning && !present:
		return string(state.MachineDown), nil
	}
	return string(m.Status), nil
}
