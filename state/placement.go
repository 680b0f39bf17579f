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

// Placement selects the machine of a unit: Machine is PlaceNew, a machine's id, or empty
// for what the provider prefers: machine 0 on "local" unless the unit asks for
// something, elsewhere a machine of its own, added before or new.
type Placement struct {
	Machine string
	Place   string // the machine's number in the bundle that adds the unit; empty: none
	// Storage are ids of storage that no unit has, which the unit gets in place of new ones. Without a
	// machine the unit goes to theirs.
	Storage []string
}

// placeUnit returns the id of the machine for a new unit. It adds a machine if no existing one fits.
func (tx *Tx) placeUnit(u Unit, env Environment, p Placement) (id string, err error) {
	switch {
	case p.Machine == PlaceNew:
		return tx.addMachineFor(u)
	case p.Machine != "":
		return p.Machine, tx.occupyHost(u, env, p.Machine)
	case env.Provider == ProviderLocal && !u.Constraints.AsksAnything():
		return "0", nil
	}

	id, err = tx.takeUnused(u)
	if id != "" || err != nil {
		return id, err
	}

	return tx.addMachineFor(u)
}

func (tx *Tx) addMachineFor(u Unit) (id string, err error) {
	m, err := tx.insertMachine(Machine{Series: u.Series, Constraints: u.Constraints})
	if err != nil {
		return "", err
	}
	return m.ID, tx.keys.Put(keys.FirstUnit(m.ID), firstUnit{Made: true})
}

// occupyHost records that the machine will host the unit, or returns an error if it cannot. Machine 0 of
// "local" also hosts units that were deployed before its series was known.
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
		return fmt.Errorf("machine %s has series %q, the application has %q", m.ID, m.Series, u.Series)
	}

	return tx.occupyMachine(id)
}

// AddUnit adds a unit to a service and puts it on a machine: the one that p names, an unused one that fits,
// or a new one. It returns ErrNotFound if the service or machine does not exist, and ErrDead if it is
// dying.
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
		return Unit{}, errors.New("it is a subordinate: its units come with those of a related application")
	}

	env, err := tx.Environment()
	if err != nil {
		return Unit{}, err
	}
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
	for _, id := range p.Storage {
		if err := tx.AttachStorage(u.Name, id); err != nil {
			return Unit{}, err
		}
	}

	return u, nil
}

func (tx *Tx) insertUnit(u Unit) (_ Unit, err error) {
	if u.Number, err = tx.keys.NextNumber(keys.UnitCounter(u.Service)); err != nil {
		return Unit{}, err
	}
	u.Name, u.Life = charm.UnitName(u.Service, u.Number), Alive
	u.Status.Since = time.Now().UTC().Round(0)

	if err := tx.keys.Put(keys.MachineUnit(u.Machine, u.Name), struct{}{}); err != nil {
		return Unit{}, err
	}
	return u, tx.keys.Put(keys.Unit(u.Name), u)
}

// AddUnits adds n units in batches, all at one place, or each at its own. On an error it returns
// those that were added.
func (s *State) AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error) {
	update := s.withProgress(s.Update, Steps{What: "units of " + service + " added", Total: n})
	return addUnits(ctx, update, service, n, at)
}

func addUnits(ctx context.Context, update Updater, service string, n int, at []Placement) ([]Unit, error) {
	return addInBatches(ctx, update, n, func(tx *Tx, i int) (Unit, error) {
		return tx.AddUnit(service, at[i%len(at)])
	})
}

// SeriesError refuses a charm whose series and those of machines do not meet; it can be forced.
type SeriesError struct{ reason string }

func (e *SeriesError) Error() string { return e.reason }

// RefuseSeries returns a *SeriesError for that reason.
func RefuseSeries(reason error) error { return &SeriesError{reason.Error()} }

// MachineSeries lists the series that machines can have, the preferred one first; nil means any. On "local"
// that is the host's series. Other providers report their own when they are examined.
//
// Providers that boot machines from trees of files also have the series in settings PROVIDER.tree.SERIES
// and PROVIDER.mirror.SERIES. nspawn has all series of the archives as well, unless nspawn.tree is set.
func (e Environment) MachineSeries() []string {
	own := e.HostSeries
	if e.Provider == ProviderLocal {
		own = cmp.Or(own, e.DefaultSeries)
	}
	if own == "" {
		return nil
	}

	all := []string{own}
	add := func(series string) {
		if !slices.Contains(all, series) {
			all = append(all, series)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		kind, series, ok := strings.Cut(strings.TrimPrefix(key, e.Provider+"."), ".")
		if ok && strings.HasPrefix(key, e.Provider+".") && (kind == "tree" || kind == "mirror") {
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

// ChooseSeries returns the series of the machines for a charm. supported holds the series of the charm,
// none if it supports all. It chooses, among the series that machines can have, the first of:
//
// * the wanted series, and no other, if wanted is not empty,
// * the environment's default, if the charm supports it,
// * the charm's series, in their order.
//
// If machines have none of them it returns a *SeriesError. With force, and in an environment that allows
// other series, it returns the default instead.
func (e Environment) ChooseSeries(wanted string, supported []string, force bool) (string, error) {
	has := e.MachineSeries()
	candidates := []string{wanted}
	if wanted == "" {
		candidates = supported
		if len(supported) == 0 || slices.Contains(supported, e.DefaultSeries) {
			candidates = append([]string{e.DefaultSeries}, supported...)
		}
	}

	for _, series := range candidates {
		if len(has) == 0 || slices.Contains(has, series) {
			return series, nil
		}
	}

	if force || e.AllowsOtherSeries() {
		return e.DefaultSeries, nil
	}

	return "", &SeriesError{fmt.Sprintf("want series %s, and machines of this model have %s",
		strings.Join(candidates, " or "), strings.Join(has, " or "))}
}

// AllowsOtherSeries reports whether charms for other series than their machines' are run.
func (e Environment) AllowsOtherSeries() bool { return e.Config[AllowOtherSeries] == "true" }

// CheckSeries returns a *SeriesError for a charm that does not support the service's series, or
// its machines' architecture, unless an operator has forced it.
func (s Service) CheckSeries(env Environment, c Charm) error {
	if s.ForceSeries || env.AllowsOtherSeries() {
		return nil
	}

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

func (v *View) checkSeries(s Service, c Charm) error {
	env, err := v.Environment()
	if err != nil {
		return err
	}
	return s.CheckSeries(env, c)
}

// SetConstraints replaces the environment's constraints whole. Units and machines
// that there are keep theirs.
func (tx *Tx) SetConstraints(c constraints.Value) error {
	return tx.changeEnvironment(func(e *Environment) { e.Constraints = c })
}

// SetServiceConstraints replaces all constraints of a service. Existing units keep theirs. A subordinate
// can have none. It returns ErrNotFound or ErrDead for such a service.
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

// checkConstraints refuses constraints of a subordinate, whose units have no choice of machines.
func (s Service) checkConstraints() error {
	if s.Subordinate && s.Constraints != (constraints.Value{}) {
		return errors.New("a subordinate cannot have constraints: its units run on their principals' machines")
	}
	return nil
}

// ResolveMachine lets the provisioner try again to start a machine in error. If c is not nil it replaces
// the machine's constraints. It returns ErrNotFound, or ErrNotInError if the machine is not in error.
func (tx *Tx) ResolveMachine(id string, c *constraints.Value) error {
	m, err := tx.Machine(id)
	if err != nil {
		return err
	}
	if m.Status != MachineError {
		return refuse(ErrNotInError, "machine %s is not in error", id)
	}

	m.Status, m.Message = MachinePending, ""
	m.Attempts, m.RetryAt = 0, time.Time{}
	if c != nil {
		m.Constraints = *c
	}
	if err := tx.keys.Put(keys.Machine(id), m); err != nil || c == nil {
		return err
	}

	return tx.updateUnused(m)
}
