package state

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Upgrade is a service's upgrade mark. It makes the service's units upgrade to the charm. The mark stays
// until the next upgrade, and has no effect on units that already run the charm.
type Upgrade struct {
	Charm string   `json:"charm"`           // the charm's URL
	Force bool     `json:"force,omitempty"` // also upgrade units in an error state, at once
	Skip  []string `json:"skip,omitempty"`  // units that keep their current charms

	// Before is the URL of the charm that the service ran before the upgrade, so that an operator can return
	// to it.
	Before string `json:"before,omitempty"`
}

// Wants reports whether the unit must upgrade. charm is the URL of the charm that it runs now.
func (u Upgrade) Wants(unit, charm string) bool {
	return u.Charm != "" && u.Charm != charm && !slices.Contains(u.Skip, unit)
}

// Upgrade reads a service's upgrade mark. It is the zero Upgrade if the service was never upgraded.
func (v *View) Upgrade(service string) (Upgrade, error) {
	return keyspace.LoadOrZero[Upgrade](v.keys, keys.Upgrade(service))
}

// UpgradeSpec describes an upgrade of a service.
type UpgradeSpec struct {
	Charm  charm.URL // the new charm, which must be in the environment
	Origin Origin
	Switch bool     // accept a charm with a different name
	Force  bool     // also upgrade units in an error state, at once
	Needs  bool     // accept charms that need features which bijou does not have, now and later
	Series bool     // accept charms that do not support the service's series, now and later
	Skip   []string // units that keep their current charms

	At time.Time // the time of the upgrade, for the record of the previous charm
}

// UpgradeService changes a service's charm, and adds peer relations that are new in the charm. The service's units
// upgrade later, each by its own agent. It returns ErrNotFound if the service or charm does not exist, and ErrDead if
// the service is being destroyed. It also returns an error if the new charm
//
// * has a different name, unless spec.Switch is set,
// * does not support the service's series or its machines' architecture, unless spec.Series or an operator's
// earlier choice allows that,
// * needs features that bijou does not have, or storage that existing units do not have, unless spec.Needs or an
// operator's earlier choice allows that,
// * is a subordinate and the old charm is not, or the reverse,
// * drops or changes a relation that is in use,
// * changes the type of an option that is set.
func (tx *Tx) UpgradeService(name string, spec UpgradeSpec) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot upgrade application %q to charm %q: %w", name, spec.Charm, err)
		}
	}()

	s, err := tx.AliveService(name)
	if err != nil {
		return err
	}

	old, err := tx.Charm(s.Charm)
	if err != nil {
		return err
	}
	fresh, err := tx.Charm(spec.Charm.String())
	if err != nil {
		return err
	}

	// An operator's choice also applies to later upgrades.
	s.ForceSeries = s.ForceSeries || spec.Series
	s.Force = s.Force || spec.Needs
	if err := tx.checkUpgrade(s, old, fresh, spec.Switch); err != nil {
		return err
	}

	mark := Upgrade{Charm: spec.Charm.String(), Force: spec.Force, Skip: spec.Skip, Before: s.Charm}
	if s.Charm == mark.Charm {
		// The service has this charm already, so the charm before the upgrade is still that of the earlier mark.
		earlier, err := tx.Upgrade(name)
		if err != nil {
			return err
		}
		mark.Before = earlier.Before
	} else if err := tx.keep(&s, mark.Charm, spec.At); err != nil { // keeps the old charm in s, if a unit was active
		return err
	}

	s.Charm = mark.Charm
	s.Origin = spec.Origin
	s.setDialect(fresh)
	if err := tx.keys.Put(keys.Service(name), s); err != nil {
		return err
	}
	if err := tx.addPeerRelations(name, fresh); err != nil {
		return err
	}

	// Without this Remove, Put could keep fields of the earlier mark that this version does not know.
	tx.keys.Remove(keys.Upgrade(name))
	return tx.keys.Put(keys.Upgrade(name), mark)
}

// checkUpgrade returns an error if the service cannot upgrade from the charm old to the charm fresh. If
// allowOtherName is true, the charms can have different names.
func (tx *Tx) checkUpgrade(s Service, old, fresh Charm, allowOtherName bool) error {
	if fresh.Meta.Name != old.Meta.Name && !allowOtherName {
		return fmt.Errorf("its name is %q, but the application runs %q: to change to a different charm, use --switch",
			fresh.Meta.Name, old.Meta.Name)
	}
	if fresh.Meta.Subordinate != s.Subordinate {
		return errors.New("only one of the two charms is a subordinate: deploy the new charm as a separate application")
	}
	if err := tx.checkSeries(s, fresh); err != nil {
		return err
	}
	if err := cmp.Or(s.CheckMissing(fresh), checkStorageKept(s, old, fresh)); err != nil {
		return err
	}
	if err := tx.checkRelationsKept(s.Name, old, fresh); err != nil {
		return err
	}

	return tx.checkOptionsKept(s.Name, old, fresh)
}

// checkStorageKept returns a *MissingError if the new charm requires more storage than the old one, since the
// service's existing units do not have that storage. It returns nil if an operator has forced the charm.
func checkStorageKept(s Service, old, fresh Charm) error {
	if s.Force {
		return nil
	}

	for _, name := range slices.Sorted(maps.Keys(fresh.Meta.Storage)) {
		if fresh.Meta.Storage[name].Minimum > old.Meta.Storage[name].Minimum {
			return &MissingError{fmt.Sprintf("the new charm needs storage %q, which the application's units do not have", name)}
		}
	}
	return nil
}

// checkRelationsKept returns an error if the new charm lacks a relation that is in use, or changes its
// role, interface or scope.
func (tx *Tx) checkRelationsKept(service string, old, fresh Charm) error {
	names, err := tx.relationNames(service)
	if err != nil {
		return err
	}

	for _, name := range names {
		// The service has the relation, so the old charm has it.
		was, _ := old.Meta.Relation(name)
		is, ok := fresh.Meta.Relation(name)

		switch {
		case !ok && was.Role == charm.Peers:
			return fmt.Errorf("the new charm drops peer relation %q, which can end only with the application", name)
		case !ok:
			return fmt.Errorf("the new charm drops relation %q, which is in use: remove the relation first", name)
		case is.Role != was.Role:
			return fmt.Errorf("the new charm changes the role of relation %q from %s to %s, but the relation is in use",
				name, was.Role, is.Role)
		case is.Interface != was.Interface:
			return fmt.Errorf(
				"the new charm changes the interface of relation %q from %q to %q, but the relation is in use",
				name, was.Interface, is.Interface,
			)
		case is.Scope != was.Scope:
			return fmt.Errorf("the new charm changes the scope of relation %q from %s to %s, but the relation is in use",
				name, was.Scope, is.Scope)
		}
	}

	return nil
}

// relationNames lists the names of the service's endpoints that have relations, sorted.
func (v *View) relationNames(service string) ([]string, error) {
	all, err := v.relationIndexes(service)
	if err != nil {
		return nil, err
	}

	var names []string
	for index := range maps.Values(all) {
		names = append(names, index.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkOptionsKept returns an error if the new charm has a different type for an option that is set. An
// option that the charm drops stays set, for units that still run the old charm.
func (tx *Tx) checkOptionsKept(service string, old, fresh Charm) error {
	config, err := tx.Config(service)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(config.Values)) {
		was := old.Config.Options[name]
		is := fresh.Config.Options[name]
		inBoth := was.Type != "" && is.Type != ""
		if inBoth && is.Type != was.Type {
			return fmt.Errorf(
				"the new charm changes the type of option %q from %s to %s, but the option is set: first unset it with juju unset",
				name, was.Type, is.Type,
			)
		}
	}

	return nil
}

// OutdatedUnit is a unit that does not run its service's charm.
type OutdatedUnit struct {
	Unit    string
	Charm   string // the URL of the charm that it runs
	State   string // the state of its workflow: "started", "install-error"
	InError bool   // the unit is in an error state, so that only a forced upgrade upgrades it
}

// OutdatedUnits lists the alive units of a service that run a charm other than the given one. It leaves out
// units that have not installed a charm, since they will install the service's charm.
func (v *View) OutdatedUnits(service, charm string) ([]OutdatedUnit, error) {
	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}

	var outdated []OutdatedUnit
	for _, u := range units {
		w, err := v.Workflow(u.Name)
		if err != nil {
			return nil, err
		}

		isInstalled := w.Charm != ""
		if u.Life == Alive && isInstalled && w.Charm != charm {
			outdated = append(outdated, OutdatedUnit{u.Name, w.Charm, cmp.Or(w.State, UnitPending), w.Failure != nil})
		}
	}

	return outdated, nil
}
