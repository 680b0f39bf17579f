package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/keys"
)

// PlaceNew places a unit on a new machine.
const PlaceNew = "new"

// Placement selects the machine of a unit.
type Placement struct {
	// Machine is PlaceNew, a machine's id, or empty. Empty means machine 0 on "local" if the unit has no
	// constraints, and otherwise an unused machine that fits or a new one.
	Machine string
	// Place is the machine's number in the bundle that adds the unit. It is empty if the unit does not come
	// from a bundle.
	Place string
	// Storage has the ids of detached storage that the unit gets instead of new storage. If Machine is empty,
	// the unit goes to the machine of that storage.
	Storage []string
}

// placeUnit returns the id of the machine for a new unit, as p.Machine selects it; see [Placement]. It adds a
// machine for PlaceNew, or if p.Machine is empty and no unused machine fits. It records that the machine will host
// the unit, except for the host of the provider "local", which is never unused.
func (tx *Tx) placeUnit(u Unit, env Environment, p Placement) (id string, err error) {
	switch {
	case p.Machine == PlaceNew:
		return tx.addMachineFor(u)
	case p.Machine != "":
		return p.Machine, tx.occupyHost(u, env, p.Machine)
	case env.Provider == ProviderLocal && !u.Constraints.AsksAnything():
		// Without constraints, the unit goes to machine 0, which is the host.
		return "0", nil
	}

	id, err = tx.takeUnused(u)
	if err != nil {
		return id, err
	}
	if id != "" {
		return id, nil
	}

	return tx.addMachineFor(u) // no unused machine fits
}

// addMachineFor adds a machine with the unit's series and constraints, and records that the machine was created
// for the unit.
func (tx *Tx) addMachineFor(u Unit) (id string, err error) {
	m, err := tx.insertMachine(Machine{Series: u.Series, Constraints: u.Constraints})
	if err != nil {
		return "", err
	}
	return m.ID, tx.keys.Put(keys.FirstUnit(m.ID), firstUnit{Made: true})
}

// occupyHost records that the machine will host the unit. It returns an error if the machine cannot host the
// unit. Machine 0 of "local" can host units of any series, since some of its units were deployed before the
// environment recorded the series of its host.
func (tx *Tx) occupyHost(u Unit, env Environment, id string) error {
	m, err := tx.Machine(id)
	switch {
	case err != nil:
		return err
	case m.Life != Alive:
		return refuse(ErrDead, "machine %s is %s", m.ID, m.Life)
	case !slices.Contains(m.Jobs, JobUnits):
		return fmt.Errorf("machine %s does not host units", m.ID)
	case m.Series != u.Series && (id != "0" || env.Provider != ProviderLocal):
		return fmt.Errorf("machine %s has series %q, but the application has %q", m.ID, m.Series, u.Series)
	}

	return tx.occupyMachine(id)
}

// AddUnit adds a unit to a service, on the machine that p selects, with the service's storage. It returns ErrNotFound
// if the service, machine or storage does not exist, and ErrDead if one of them is dying. It returns a different error
// for a subordinate service, and if the machine cannot host the unit or the unit cannot get the storage.
func (tx *Tx) AddUnit(service string, p Placement) (_ Unit, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add unit to application %q: %w", service, err)
		}
	}()

	s, err := tx.AliveService(service)
	if err != nil {
		return Unit{}, err
	}
	if s.Subordinate {
		return Unit{}, errors.New("it is a subordinate, whose units come with units of a related application")
	}

	env, err := tx.Environment()
	if err != nil {
		return Unit{}, err
	}
	// The unit must go to the machine of its storage. AttachStorage refuses storage on any other machine.
	if p.Machine == "" && len(p.Storage) > 0 {
		first, err := tx.Storage(p.Storage[0])
		if err != nil {
			return Unit{}, err
		}
		p.Machine = first.Machine
	}

	u := Unit{
		Service:     service,
		Series:      s.Series,
		Place:       p.Place,
		Constraints: s.Constraints.Over(env.Constraints),
	}

	if u.Machine, err = tx.placeUnit(u, env, p); err != nil {
		return Unit{}, err
	}
	if u, err = tx.insertUnit(u); err != nil {
		return Unit{}, err
	}

	if err := tx.addServiceStorage(s, u, p.Storage); err != nil {
		return Unit{}, err
	}
	// addServiceStorage has left out the storage that these ids replace.
	for _, id := range p.Storage {
		if err := tx.AttachStorage(u.Name, id); err != nil {
			return Unit{}, err
		}
	}

	return u, nil
}

// insertUnit writes the records of a new unit, with the service's next number.
func (tx *Tx) insertUnit(u Unit) (_ Unit, err error) {
	if u.Number, err = tx.keys.NextNumber(keys.UnitCounter(u.Service)); err != nil {
		return Unit{}, err
	}
	u.Name = charm.UnitName(u.Service, u.Number)
	u.Life = Alive
	u.Status.Since = time.Now().UTC().Round(0) // Round removes the monotonic time, which is not stored

	if err := tx.keys.Put(keys.MachineUnit(u.Machine, u.Name), struct{}{}); err != nil {
		return Unit{}, err
	}
	return u, tx.keys.Put(keys.Unit(u.Name), u)
}

// AddUnits adds n units in batches. It uses the placements in turn; at least one must be given. If AddUnits
// fails, it returns the units that it has added, and an error.
func (s *State) AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error) {
	update := s.withProgress(s.Update, Steps{What: "units of " + service + " added", Total: n})
	return addUnits(ctx, update, service, n, at)
}

// addUnits does what [State.AddUnits] does, with the function update for each transaction.
func addUnits(ctx context.Context, update Updater, service string, n int, at []Placement) ([]Unit, error) {
	return addInBatches(ctx, update, n, func(tx *Tx, i int) (Unit, error) {
		return tx.AddUnit(service, at[i%len(at)])
	})
}

// SeriesError is returned if no machine has a series or architecture that the charm supports. Operators can
// force the charm.
type SeriesError struct{ reason string }

func (e *SeriesError) Error() string { return e.reason }

// RefuseSeries returns a *SeriesError with the given reason.
func RefuseSeries(reason error) error { return &SeriesError{reason.Error()} }

// MachineSeries lists the series that machines can have, the preferred one first; nil means any. The preferred one
// is HostSeries or, only on "local", the default series if HostSeries is empty. If there is no preferred one, the
// result is nil.
//
// Providers that boot machines from trees of files also have the series in settings PROVIDER.tree.SERIES
// and PROVIDER.mirror.SERIES. nspawn has all series of the archives as well, unless nspawn.tree is set.
func (e Environment) MachineSeries() []string {
	preferred := e.HostSeries
	if e.Provider == ProviderLocal {
		preferred = cmp.Or(preferred, e.DefaultSeries)
	}
	if preferred == "" {
		return nil
	}

	all := []string{preferred}
	add := func(series string) {
		if !slices.Contains(all, series) {
			all = append(all, series)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		setting, ofProvider := strings.CutPrefix(key, e.Provider+".")
		if !ofProvider {
			continue
		}
		kind, series, hasSeries := strings.Cut(setting, ".")
		if hasSeries && (kind == "tree" || kind == "mirror") {
			add(series)
		}
	}

	if e.Provider == ProviderNspawn && e.Config[ProviderNspawn+".tree"] == "" {
		for _, series := range charm.ArchivedSeries() {
			add(series)
		}
	}

	return all
}

// ChooseSeries returns the series of the machines for a charm. supported lists the series that the charm
// supports; empty means all. It chooses, among the series that machines can have, the first of:
//
// * the wanted series, and no other, if wanted is not empty,
// * the environment's default, if the charm supports it,
// * the charm's series, in their order.
//
// If machines can have none of these series, it returns a *SeriesError. With force, or in an environment that
// allows other series, it returns the environment's default instead.
func (e Environment) ChooseSeries(wanted string, supported []string, force bool) (string, error) {
	available := e.MachineSeries() // empty means any
	candidates := []string{wanted}
	if wanted == "" {
		candidates = supported
		if len(supported) == 0 || slices.Contains(supported, e.DefaultSeries) {
			candidates = append([]string{e.DefaultSeries}, supported...)
		}
	}

	for _, series := range candidates {
		if len(available) == 0 || slices.Contains(available, series) {
			return series, nil
		}
	}

	if force || e.AllowsOtherSeries() {
		return e.DefaultSeries, nil
	}

	return "", &SeriesError{fmt.Sprintf("want series %s, but machines of this model have %s",
		strings.Join(candidates, " or "), strings.Join(available, " or "))}
}

// AllowsOtherSeries reports whether charms can run on machines whose series they do not support.
func (e Environment) AllowsOtherSeries() bool { return e.Config[AllowOtherSeries] == "true" }

// CheckSeries returns a *SeriesError if the charm does not support the service's series or its machines'
// architecture. It returns nil if an operator has forced the charm, or if the environment allows other
// series.
func (s Service) CheckSeries(env Environment, c Charm) error {
	if s.ForceSeries || env.AllowsOtherSeries() {
		return nil
	}

	// Without a constraint on the architecture, the machines count as having that of this binary.
	arch := cmp.Or(s.Constraints.Over(env.Constraints).Hardware().Arch, constraints.HostArch())
	switch {
	case !c.Meta.Supports(s.Series):
		return &SeriesError{fmt.Sprintf("charm %q does not support series %q: it supports %q",
			c.URL, s.Series, c.Meta.Series)}
	case !c.Meta.SupportsArch(s.Series, arch):
		return &SeriesError{fmt.Sprintf("charm %q does not support %s on series %q: it supports %q",
			c.URL, arch, s.Series, c.Meta.Archs[s.Series])}
	}

	return nil
}

// checkSeries is [Service.CheckSeries] with the environment that it reads.
func (v *View) checkSeries(s Service, c Charm) error {
	env, err := v.Environment()
	if err != nil {
		return err
	}
	return s.CheckSeries(env, c)
}

// SetConstraints replaces all constraints of the environment. Existing units and machines keep their
// constraints.
func (tx *Tx) SetConstraints(c constraints.Value) error {
	return tx.changeEnvironment(func(e *Environment) { e.Constraints = c })
}

// SetServiceConstraints replaces all constraints of a service. Existing units keep their constraints. A
// subordinate cannot have constraints. It returns ErrNotFound if the service does not exist, and ErrDead if
// it is not alive.
func (tx *Tx) SetServiceConstraints(service string, c constraints.Value) error {
	s, err := tx.AliveService(service)
	if err != nil {
		return err
	}

	s.Constraints = c
	if err := s.checkConstraints(); err != nil {
		return fmt.Errorf("cannot set constraints of application %q: %w", service, err)
	}

	return tx.keys.Put(keys.Service(service), s)
}

// checkConstraints refuses constraints of a subordinate, since its units must go to the machines of their
// principals.
func (s Service) checkConstraints() error {
	if s.Subordinate && s.Constraints != (constraints.Value{}) {
		return errors.New("a subordinate cannot have constraints: its units run on their principals' machines")
	}
	return nil
}

// ResolveMachine lets the provisioner try again to start a machine in error. If c is not nil, it replaces the
// machine's constraints. It returns ErrNotFound if there is no such machine, and ErrNotInError if the machine
// is not in error.
func (tx *Tx) ResolveMachine(id string, c *constraints.Value) error {
	m, err := tx.Machine(id)
	if err != nil {
		return err
	}
	if m.Status != MachineError {
		return refuse(ErrNotInError, "machine %s is not in error", id)
	}

	m.Status = MachinePending
	m.Message = ""
	m.Attempts = 0
	m.RetryAt = time.Time{}
	if c != nil {
		m.Constraints = *c
	}
	if err := tx.keys.Put(keys.Machine(id), m); err != nil {
		return err
	}
	if c == nil {
		return nil
	}

	return tx.updateUnused(m) // copies the new constraints, if the machine is unused
}
