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

// unusedMachine is the record of a machine that no unit has done anything on: what must be known
// of it to put one there.
type unusedMachine struct {
	Series      string            `json:"series"`
	Constraints constraints.Value `json:"constraints,omitzero"`
}

// firstUnit is the record of a machine that has, or has had, one unit only: if that
// leaves before anything was installed, the machine is as good as new.
type firstUnit struct {
	Made bool `json:"made,omitempty"` // the machine was made for it
}

// occupyMachine records that a machine will host a unit: it is no longer unused.
func (tx *Tx) occupyMachine(id string) error {
	_, unused, err := tx.keys.Get(keys.UnusedMachine(id))
	if err != nil {
		return err
	}
	if unused {
		tx.keys.Remove(keys.UnusedMachine(id))
		return tx.keys.Put(keys.FirstUnit(id), firstUnit{})
	}

	_, first, err := tx.keys.Get(keys.FirstUnit(id))
	if first {
		tx.keys.Remove(keys.FirstUnit(id))
	}
	return err
}

// releaseMachine releases the machine of a unit that leaves before anything was installed. If the machine
// has hosted no other unit, it counts as unused again. If it was made for this unit and started is false,
// since it has no instance yet, it is removed instead.
func (tx *Tx) releaseMachine(u Unit, started bool) error {
	first, ok, err := keyspace.Load[firstUnit](tx.keys, keys.FirstUnit(u.Machine))
	if err != nil || !ok || u.Principal != "" {
		return err
	}

	m, err := tx.Machine(u.Machine)
	if err != nil || m.Life != Alive {
		return err
	}
	if first.Made && !started {
		return tx.RemoveMachine(m.ID)
	}

	tx.keys.Remove(keys.FirstUnit(m.ID))
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// maxUnusedLooked bounds how many unused machines are read for one unit, since each is a
// condition of the transaction. More than that are of no use all at once.
const maxUnusedLooked = 16

// takeUnused returns the first unused machine, by number, that fits; "" if there is none.
func (tx *Tx) takeUnused(u Unit) (id string, err error) {
	ids, err := tx.listFitting(u)
	if err != nil {
		return "", err
	}

	for _, id := range ids[:min(maxUnusedLooked, len(ids))] {
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

// listFitting returns the unused machines that fit. It adds no condition to the commit, since unused
// machines come and go.
func (v *View) listFitting(u Unit) (ids []string, err error) {
	kvs, err := v.keys.ListUnguarded(keys.UnusedMachines)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		s, err := keyspace.Decode[unusedMachine](kv)
		if err != nil {
			return nil, err
		}

		if s.Series == u.Series && s.Constraints.Satisfies(u.Constraints) {
			ids = append(ids, kv.Key[len(keys.UnusedMachines):])
		}
	}

	slices.SortFunc(ids, CompareIDs)
	return ids, nil
}

// updateUnused writes the machine's new constraints where units look for unused machines.
func (tx *Tx) updateUnused(m Machine) error {
	_, there, err := tx.keys.Get(keys.UnusedMachine(m.ID))
	if err != nil || !there {
		return err
	}
	return tx.keys.Put(keys.UnusedMachine(m.ID), unusedMachine{Series: m.Series, Constraints: m.Constraints})
}

// AddMachine adds a machine without a unit, which the provisioner starts. Its placement is PROVIDER:WHERE.
// By default it has the environment's default series and hosts units. Its constraints go over the
// environment's. Unless it manages the environment, later units may be placed on it. It returns
// ErrOtherProvider for a placement of a different provider, and ErrExists if there is a machine at that
// placement.
func (tx *Tx) AddMachine(m Machine) (Machine, error) {
	env, err := tx.Environment()
	if err != nil {
		return Machine{}, err
	}
	if has := env.MachineSeries(); m.Series != "" && len(has) > 0 && !slices.Contains(has, m.Series) {
		return Machine{}, RefuseSeries(fmt.Errorf("machines of this model cannot have series %q: they have %q", m.Series, has))
	}
	if m.Placement, err = tx.checkPlacement(env, m.Placement); err != nil {
		return Machine{}, err
	}

	m.Series, m.Constraints = cmp.Or(m.Series, env.DefaultSeries), m.Constraints.Over(env.Constraints)
	m, err = tx.insertMachine(m)
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

	m.ID = strconv.Itoa(n)
	m.Life = Alive
	m.Status = MachinePending
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
		return "", refuse(ErrOtherProvider,
			"placement %q is for the provider %q, and this model has %q", text, name, env.Provider)
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
