package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// unusedMachine is the record of a machine on which no unit has installed anything. It has the facts that
// decide whether a new unit fits.
type unusedMachine struct {
	Series      string            `json:"series"`
	Constraints constraints.Value `json:"constraints,omitzero"`
}

// firstUnit is the record of a machine that has only ever hosted one unit. If that unit leaves before it has
// installed anything, the machine counts as unused again.
type firstUnit struct {
	Made bool `json:"made,omitempty"` // the machine was created for the unit
}

// occupyMachine records that a machine will host one more unit. If the machine was unused, a firstUnit record
// replaces its unusedMachine record. Otherwise the machine loses its firstUnit record, if it has one.
func (tx *Tx) occupyMachine(id string) error {
	_, unused, err := tx.keys.Get(keys.UnusedMachine(id))
	if err != nil {
		return err
	}
	if unused {
		tx.keys.Remove(keys.UnusedMachine(id))
		return tx.keys.Put(keys.FirstUnit(id), firstUnit{})
	}

	// A machine that hosts a second unit can no longer become unused again.
	_, hasOneUnit, err := tx.keys.Get(keys.FirstUnit(id))
	if err != nil {
		return err
	}
	if hasOneUnit {
		tx.keys.Remove(keys.FirstUnit(id))
	}
	return nil
}

// machineStart states whether a machine may have an instance.
type machineStart bool

const (
	neverStarted machineStart = false
	maybeStarted machineStart = true
)

// releaseMachine releases the machine of a unit that leaves before it has installed anything. The machine counts
// as unused again. If it was never started, and was made for the unit, releaseMachine removes it instead. It does
// nothing if the machine has no firstUnit record or is not alive, or for a subordinate, whose machine its
// principal uses.
func (tx *Tx) releaseMachine(u Unit, started machineStart) error {
	first, isOnlyUnit, err := keyspace.Load[firstUnit](tx.keys, keys.FirstUnit(u.Machine))
	if err != nil {
		return err
	}
	isSubordinate := u.Principal != ""
	if !isOnlyUnit || isSubordinate {
		return nil
	}

	m, err := tx.Machine(u.Machine)
	if err != nil {
		return err
	}
	if m.Life != Alive {
		return nil
	}
	if first.Made && started == neverStarted {
		return tx.RemoveMachine(m.ID)
	}

	tx.keys.Remove(keys.FirstUnit(m.ID))
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// maxUnusedLooked limits how many unused machines are read to place one unit, since each of them is a
// condition of the transaction.
const maxUnusedLooked = 16

// takeUnused returns the id of the unused machine with the lowest number that fits the unit, is alive, and is not
// in error. It marks the machine as used. It looks only at the first maxUnusedLooked machines that fit, and
// returns "" if it finds none.
func (tx *Tx) takeUnused(u Unit) (id string, err error) {
	ids, err := tx.listFitting(u)
	if err != nil {
		return "", err
	}

	for _, id := range ids[:min(maxUnusedLooked, len(ids))] {
		// The list was read without a condition, so a machine may be gone.
		m, err := tx.Machine(id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if m.Life == Alive && m.Status != MachineError {
			return id, tx.occupyMachine(id)
		}
	}

	return "", nil
}

// listFitting returns the ids of the unused machines that fit the unit, sorted by number. The list is not a
// condition of the commit, since it changes often.
func (v *View) listFitting(u Unit) (ids []string, err error) {
	kvs, err := v.keys.ListUnguarded(keys.UnusedMachines)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		unused, err := keyspace.Decode[unusedMachine](kv)
		if err != nil {
			return nil, err
		}

		if unused.Series == u.Series && unused.Constraints.Satisfies(u.Constraints) {
			ids = append(ids, kv.Key[len(keys.UnusedMachines):])
		}
	}

	slices.SortFunc(ids, CompareIDs)
	return ids, nil
}

// updateUnused copies the machine's series and constraints to its record as an unused machine. It does nothing
// if the machine has no such record.
func (tx *Tx) updateUnused(m Machine) error {
	_, isUnused, err := tx.keys.Get(keys.UnusedMachine(m.ID))
	if err != nil {
		return err
	}
	if !isUnused {
		return nil
	}
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// AddMachine adds a machine without a unit. The provisioner starts it. The placement in m has the form
// PROVIDER:WHERE, or is empty, and the new machine keeps only WHERE. By default the machine has the environment's
// default series, and the job of hosting units. The constraints in m override the environment's. New units can be
// placed on the machine if it hosts units and does not manage the environment.
//
// It returns a *SeriesError if no machine can have the series, ErrOtherProvider if the placement is for a
// different provider, and ErrExists if there is already a machine at that placement. It returns a different error
// if the placement is invalid, or if it is for the environment's own provider and that is "local".
func (tx *Tx) AddMachine(m Machine) (Machine, error) {
	env, err := tx.Environment()
	if err != nil {
		return Machine{}, err
	}

	available := env.MachineSeries() // empty means any
	isRestricted := m.Series != "" && len(available) > 0
	if isRestricted && !slices.Contains(available, m.Series) {
		return Machine{}, RefuseSeries(fmt.Errorf("machines of this model cannot have series %q: they have %q", m.Series, available))
	}
	if m.Placement, err = tx.checkPlacement(env, m.Placement); err != nil {
		return Machine{}, err
	}

	m.Series = cmp.Or(m.Series, env.DefaultSeries)
	m.Constraints = m.Constraints.Over(env.Constraints)
	m, err = tx.insertMachine(m)
	if err != nil {
		return m, err
	}

	takesUnits := slices.Contains(m.Jobs, JobUnits) && !slices.Contains(m.Jobs, JobManage)
	if !takesUnits {
		return m, nil
	}

	return m, tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// insertMachine writes the record of a new machine, with the next number. A machine without jobs gets JobUnits.
func (tx *Tx) insertMachine(m Machine) (Machine, error) {
	n, err := tx.keys.NextNumber(keys.MachineCounter)
	if err != nil {
		return Machine{}, err
	}

	m.ID = strconv.Itoa(n)
	m.Life = Alive
	m.Status = MachinePending
	if len(m.Jobs) == 0 {
		m.Jobs = []string{JobUnits}
	}
	return m, tx.keys.Put(keys.Machine(m.ID), m)
}

// checkPlacement returns WHERE of a placement PROVIDER:WHERE, or "" for an empty placement. It returns an
// error if the placement is invalid, for a different provider, for the provider "local", or already taken.
func (tx *Tx) checkPlacement(env Environment, text string) (where string, err error) {
	if text == "" {
		return "", nil
	}

	name, where, _ := strings.Cut(text, ":")
	isForbidden := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case name == "" || where == "" || strings.ContainsFunc(text, isForbidden):
		return "", fmt.Errorf("invalid placement %q: want PROVIDER:WHERE, as in ssh:user@host", text)
	case name != env.Provider:
		return "", refuse(ErrOtherProvider,
			"placement %q is for the provider %q, but this model has %q", text, name, env.Provider)
	case name == ProviderLocal:
		return "", fmt.Errorf("placement %q: the machines of the provider %q are all on this host", text, name)
	}

	machines, err := tx.Machines()
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(machines, func(m Machine) bool { return m.Placement == where }); i >= 0 {
		return "", refuse(ErrExists, "machine %s is already at %q", machines[i].ID, text)
	}

	return where, nil
}

// AddMachines adds n machines in batches, each as AddMachine adds m. If it fails, it returns the machines that it
// has added, and an error.
func (s *State) AddMachines(ctx context.Context, n int, m Machine) ([]Machine, error) {
	update := s.withProgress(s.Update, Steps{What: "machines added", Total: n})
	machines, err := addInBatches(ctx, update, n, func(tx *Tx, _ int) (Machine, error) {
		return tx.AddMachine(m)
	})
	if err != nil {
		return machines, fmt.Errorf("cannot add machine: %w", err)
	}

	return machines, nil
}
