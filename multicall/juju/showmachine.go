package juju

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

type showMachineCmd struct {
	Machines   []string `arg:"" optional:"" name:"machine" help:"The machines' ids; default: all."`
	Format     string   `enum:"yaml,json,tabular" default:"yaml" placeholder:"FORMAT" help:"Print as yaml, json or tabular; default yaml."`
	outputFlag `embed:""`
}

// Run prints the named machines, or all machines if none is named. If one of the names is not found, it prints
// no machine.
func (c showMachineCmd) Run(o *operator) error {
	s, err := readChosen(o, func(v *state.View) (status.Status, error) {
		return status.Read(v, status.Options{Now: time.Now()})
	})
	if err != nil {
		return err
	}

	o.noteDamage(s.Damage)
	for _, id := range c.Machines {
		if _, ok := s.Machines[id]; !ok {
			known := slices.SortedFunc(maps.Keys(s.Machines), state.CompareIDs)
			return console.Hint(fmt.Errorf("machine %q not found", id), listHint("machines", known))
		}
	}

	maps.DeleteFunc(s.Machines, func(id string, _ status.Machine) bool {
		return len(c.Machines) > 0 && !slices.Contains(c.Machines, id)
	})
	entries := machineEntries(s)
	return o.printTable(c.Format, map[string]any{"machines": entries}, machineTable(s, entries))
}

// machineEntries returns all machines by id, each with its units in order.
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
