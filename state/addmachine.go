package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/progress"
)

// MachineSpec describes a machine to be added without a unit.
type MachineSpec struct {
	Series      string            // empty: the environment's default
	Jobs        []string          // empty: host-units
	Constraints constraints.Value // over the environment's
	Placement   string            // PROVIDER:WHERE, of the environment's provider; empty: anywhere
}

// AddMachine adds a machine for the provisioner to start. A unit that it fits is
// put there, unless it manages the environment. ErrOtherProvider; ErrExists: there
// is one at that placement.
func (tx *Tx) AddMachine(spec MachineSpec) (Machine, error) {
	env, err := tx.Environment()
	if err != nil {
		return Machine{}, err
	}
	series := cmp.Or(spec.Series, env.DefaultSeries)
	if has := env.MachineSeries(); spec.Series != "" && len(has) > 0 && !slices.Contains(has, series) {
		return Machine{}, fmt.Errorf("there are no machines of series %q here: they have %q", series, has)
	}
	where, err := tx.checkPlacement(env, spec.Placement)
	if err != nil {
		return Machine{}, err
	}
	m, err := tx.insertMachine(Machine{
		Series: series, Jobs: spec.Jobs,
		Constraints: spec.Constraints.Over(env.Constraints), Placement: where,
	})
	if err != nil || slices.Contains(m.Jobs, JobManage) || !slices.Contains(m.Jobs, JobUnits) {
		return m, err
	}
	return m, tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

func (tx *Tx) insertMachine(m Machine) (Machine, error) {
	n, err := tx.keys.NextNumber(keys.MachineCounter)
	if err != nil {
		return Machine{}, err
	}
	m.ID, m.Life, m.Status = strconv.Itoa(n), Alive, MachinePending
	if len(m.Jobs) == 0 {
		m.Jobs = []string{JobUnits}
	}
	return m, tx.keys.Put(keys.Machine(m.ID), m)
}

// checkPlacement returns the provider's part of PROVIDER:WHERE.
func (tx *Tx) checkPlacement(env Environment, text string) (where string, err error) {
	if text == "" {
		return "", nil
	}
	name, where, _ := strings.Cut(text, ":")
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case name == "" || where == "" || strings.ContainsFunc(text, odd):
		return "", fmt.Errorf("invalid placement %q: want PROVIDER:WHERE, as in ssh:user@host", text)
	case name != env.Provider:
		return "", refuse(ErrOtherProvider, "placement %q is for the provider %q, and this environment has %q", text, name, env.Provider)
	case name == ProviderLocal:
		return "", fmt.Errorf("placement %q: the machines of the provider %q are all on this host", text, name)
	}
	machines, err := tx.Machines()
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(machines, func(m Machine) bool { return m.Placement == where }); i >= 0 {
		return "", refuse(ErrExists, "machine %s is at %q already", machines[i].ID, text)
	}
	return where, nil
}

// AddMachines adds n machines in batches. On an error it returns those that were added.
func (s *State) AddMachines(ctx context.Context, n int, spec MachineSpec) ([]Machine, error) {
	update := withProgress(ctx, s.Update, progress.Steps{What: "machines added", Total: n})
	machines, err := addInBatches(ctx, update, n, func(tx *Tx) (Machine, error) { return tx.AddMachine(spec) })
	if err != nil {
		err = fmt.Errorf("cannot add machine: %w", err)
	}
	return machines, err
}
