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

// Upgrade is a service's upgrade mark: its units are to go over to that charm. A unit
// has its part done once it runs the charm; the mark stays until the next.
type Upgrade struct {
	Charm string   `json:"charm"`           // the URL
	Force bool     `json:"force,omitempty"` // also units in an error state, at once
	Skip  []string `json:"skip,omitempty"`  // units that stay with what they have

	Before string `json:"before,omitempty"` // what the service ran before: kept, for who goes back
}

// Wants reports whether the mark is for that unit, which runs that charm.
func (u Upgrade) Wants(unit, charm string) bool {
	return u.Charm != "" && u.Charm != charm && !slices.Contains(u.Skip, unit)
}

// Upgrade reads a service's upgrade mark; the zero Upgrade if it never was upgraded.
func (v *View) Upgrade(service string) (Upgrade, error) {
	return keyspace.LoadOrZero[Upgrade](v.keys, keys.Upgrade(service))
}

// UpgradeSpec describes an upgrade of a service.
type UpgradeSpec struct {
	Charm  charm.URL // added before, or in the same Tx
	Origin Origin
	Switch bool     // to a charm of another name
	Force  bool     // also units in an error state, at once
	Needs  bool     // from now on also charms that need what bijou does not have
	Series bool     // from now on also charms that do not support the service's series
	Skip   []string // units that stay with what they have: those of UpgradeSkips

	At time.Time // noted beside the charm that the service leaves
}

// UpgradeService changes a service's charm. Its units follow, each at its own time. It returns ErrNotFound
// or ErrDead for such a service or charm, and writes nothing if the new charm
//
// * has a different name, unless Switch is set,
// * does not support the service's series,
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

	old, oldErr := tx.Charm(s.Charm)
	fresh, freshErr := tx.Charm(spec.Charm.String())
	if err := cmp.Or(oldErr, freshErr); err != nil {
		return err
	}

	s.ForceSeries, s.Force = s.ForceSeries || spec.Series, s.Force || spec.Needs
	if err := tx.checkUpgrade(s, old, fresh, spec.Switch); err != nil {
		return err
	}

	mark := Upgrade{Charm: spec.Charm.String(), Force: spec.Force, Skip: spec.Skip, Before: s.Charm}
	if s.Charm == mark.Charm {
		earlier, err := tx.Upgrade(name)
		if err != nil {
			return err
		}
		mark.Before = earlier.Before
	} else if err := tx.keep(&s, mark.Charm, spec.At); err != nil {
		return err
	}

	s.Charm, s.Origin = spec.Charm.String(), spec.Origin
	s.setDialect(fresh)
	if err := tx.keys.Put(keys.Service(name), s); err != nil {
		return err
	}
	if err := tx.addPeerRelations(name, fresh); err != nil {
		return err
	}

	tx.keys.Remove(keys.Upgrade(name)) // whatever is there is of an earlier upgrade
	return tx.keys.Put(keys.Upgrade(name), mark)
}

// checkUpgrade returns an error if the service cannot go over from the charm old to fresh. With other the
// charms may have different names.
func (tx *Tx) checkUpgrade(s Service, old, fresh Charm, other bool) error {
	if fresh.Meta.Name != old.Meta.Name && !other {
		return fmt.Errorf("its name is %q, the application runs %q: use --switch for another charm",
			fresh.Meta.Name, old.Meta.Name)
	}
	if fresh.Meta.Subordinate != s.Subordinate {
		return errors.New("one of them is a subordinate and the other is not: deploy it as a separate application")
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

// checkStorageKept refuses a charm that cannot do without storage that the service's units do not
// have, unless it is forced.
func checkStorageKept(s Service, old, fresh Charm) error {
	for _, name := range slices.Sorted(maps.Keys(fresh.Meta.Storage)) {
		if !s.Force && fresh.Meta.Storage[name].Minimum > old.Meta.Storage[name].Minimum {
			return &MissingError{fmt.Sprintf("it needs storage %q, which the application's units do not have", name)}
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
		was, _ := old.Meta.Relation(name)
		is, ok := fresh.Meta.Relation(name)

		switch {
		case !ok && was.Role == charm.Peers:
			return fmt.Errorf("it drops peer relation %q, which can end only with the application", name)
		case !ok:
			return fmt.Errorf("it drops relation %q, which is in use: remove the relation first", name)
		case is.Role != was.Role:
			return fmt.Errorf("it changes the role of relation %q from %s to %s, and the relation is in use",
				name, was.Role, is.Role)
		case is.Interface != was.Interface:
			return fmt.Errorf(
				"it changes the interface of relation %q from %q to %q, and the relation is in use",
				name, was.Interface, is.Interface,
			)
		case is.Scope != was.Scope:
			return fmt.Errorf("it changes the scope of relation %q from %s to %s, and the relation is in use",
				name, was.Scope, is.Scope)
		}
	}

	return nil
}

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
		was, is := old.Config.Options[name], fresh.Config.Options[name]
		if is.Type != "" && was.Type != "" && is.Type != was.Type {
			return fmt.Errorf(
				"it changes the type of option %q, which is set, from %s to %s: juju unset it first",
				name, was.Type, is.Type,
			)
		}
	}

	return nil
}

// OutdatedUnit is a unit that runs another charm than its service is to run.
type OutdatedUnit struct {
	Unit    string
	Charm   string // the URL that it runs
	State   string // of its workflow: "started", "install-error"
	InError bool   // such a unit is upgraded by force only
}

// OutdatedUnits lists the units of a service that run, and must keep, a charm different from the given one.
// It leaves out units that have not begun, since they install the newest charm.
func (v *View) OutdatedUnits(service, charm string) ([]OutdatedUnit, error) {
	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}

	var behind []OutdatedUnit
	for _, u := range units {
		w, err := v.Workflow(u.Name)
		if err != nil {
			return nil, err
		}

		if u.Life == Alive && w.Charm != "" && w.Charm != charm {
			behind = append(behind, OutdatedUnit{u.Name, w.Charm, cmp.Or(w.State, UnitPending), w.Failure != nil})
		}
	}

	return behind, nil
}
