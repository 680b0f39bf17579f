package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Resolved is an operator's answer to an error.
type Resolved string

// The answers.
const (
	Unresolved    Resolved = ""
	ResolvedDone  Resolved = "done"  // the failed hook counts as done
	ResolvedRetry Resolved = "retry" // the failed hook runs again
)

// Unit is a unit of a service.
type Unit struct {
	Name    string `json:"-"`
	Service string `json:"-"`
	Number  int    `json:"-"`

	Charm   string `json:"charm,omitempty"` // the URL of the deployed charm; empty before the first deployment
	Machine string `json:"machine"`         // the machine's id
	Series  string `json:"series"`
	Life    Life   `json:"life"`

	Place string `json:"place,omitempty"` // Placement.Place

	// Constraints are those of the service, combined with those of the environment, at the time when the unit
	// was added. They decide the unit's machine, and are not shown.
	Constraints constraints.Value `json:"constraints,omitzero"`

	Principal    string   `json:"principal,omitempty"`    // a subordinate's principal unit; empty for a principal
	Subordinates []string `json:"subordinates,omitempty"` // a principal's subordinate units

	Resolved          Resolved         `json:"resolved,omitempty"`           // the answer to the unit's own error
	ResolvedRelations map[int]Resolved `json:"resolved-relations,omitempty"` // the answers to errors in relations, by relation id

	// Interrupt is the id of the hook run that an operator has interrupted.
	Interrupt string `json:"interrupt,omitempty"`

	Status WorkloadStatus `json:"status,omitzero"`
	// ActiveWith is the URL of the charm that the unit ran when it last set the status "active".
	ActiveWith string `json:"active-with,omitempty"`

	Workload WorkloadVersion `json:"workload,omitzero"`
}

// WorkloadVersion is the version of the workload, as the unit's charm has set it.
type WorkloadVersion struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
}

// WorkloadStatus is the status that a charm has set.
type WorkloadStatus struct {
	Status  string         `json:"status,omitempty"` // "", "maintenance", "blocked", "waiting", "active"
	Message string         `json:"message,omitempty"`
	Data    map[string]any `json:"data,omitempty"`
	Since   time.Time      `json:"since,omitzero"`
}

// workloadActive is the status of a unit whose workload is running properly.
const workloadActive = "active"

// Identity returns the version, which distinguishes this record from its successors.
func (w WorkloadVersion) Identity() any { return w.Version }

// Identity returns the time of the status, since a charm replaces the whole status at once.
func (w WorkloadStatus) Identity() any { return w.Since.UnixNano() }

// Unit reads a unit. It returns ErrNotFound if there is no such unit, and a different error if the name is
// invalid.
func (v *View) Unit(name string) (Unit, error) {
	service, number, err := charm.ParseUnit(name)
	if err != nil {
		return Unit{}, err
	}
	u, err := keyspace.LoadExisting[Unit](v.keys, keys.Unit(name), "unit %q not found", name)
	// The record does not contain these fields.
	u.Name = name
	u.Service = service
	u.Number = number
	return u, err
}

// Units reads the units of a service, or of all services if service is empty, sorted by service and number.
func (v *View) Units(service string) ([]Unit, error) {
	prefix := keys.Units
	if service != "" {
		prefix = keys.ServiceUnits(service)
	}
	kvs, err := v.keys.List(prefix)
	if err != nil {
		return nil, err
	}

	return v.DecodeUnits(kvs)
}

// DecodeUnits returns the units among records below keys.Units, sorted by service and number. It leaves out keys
// below a unit, such as its ports, and skips records of units that do not decode.
func (v *View) DecodeUnits(kvs []keyspace.KeyValue) (units []Unit, err error) {
	for _, kv := range kvs {
		service, number, err := charm.ParseUnit(kv.Key[len(keys.Units):])
		if err != nil {
			continue // the key is not that of a unit's own record
		}
		u, err := keyspace.Decode[Unit](kv)
		if v.keys.Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}

		u.Name = kv.Key[len(keys.Units):]
		u.Service = service
		u.Number = number
		units = append(units, u)
	}

	slices.SortFunc(units, func(a, b Unit) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Number, b.Number))
	})
	return units, nil
}

// unitNames returns the unit names after the prefix, which all keys must have, sorted by service and number. It
// leaves out keys that do not name a unit.
func unitNames(kvs []keyspace.KeyValue, prefix string) (names []string) {
	for _, kv := range kvs {
		if name := kv.Key[len(prefix):]; charm.IsUnit(name) {
			names = append(names, name)
		}
	}

	charm.SortUnits(names)
	return names
}

// MachineUnits lists the names of the units on a machine, sorted by service and number.
func (v *View) MachineUnits(id string) ([]string, error) {
	kvs, err := v.keys.List(keys.MachineUnits(id))
	return unitNames(kvs, keys.MachineUnits(id)), err
}

// changeUnit reads a unit, calls change with it, and writes it. It returns ErrNotFound if there is no such unit.
func (tx *Tx) changeUnit(name string, change func(u *Unit)) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	change(&u)
	return tx.keys.Put(keys.Unit(name), u)
}

// SetUnitStatus sets a unit's workload status, with its message truncated. If the status is active, it also
// records that the unit is active with its current charm.
func (tx *Tx) SetUnitStatus(name string, w WorkloadStatus) error {
	w.Message = Truncate(w.Message, maxMessageBytes)
	return tx.changeUnit(name, func(u *Unit) {
		u.Status = w
		if w.Status == workloadActive {
			u.ActiveWith = u.Charm
		}
	})
}

// SetWorkloadVersion records the version of a unit's workload, and since when the workload has it. It writes
// nothing if the version has not changed. It shortens a very long version.
func (tx *Tx) SetWorkloadVersion(name, version string, since time.Time) error {
	version = Truncate(version, maxMessageBytes)
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Workload.Version == version {
		return nil
	}
	u.Workload = WorkloadVersion{Version: version, Since: since.UTC()}
	return tx.keys.Put(keys.Unit(name), u)
}

// SetUnitCharm records the charm that is deployed on a unit.
func (tx *Tx) SetUnitCharm(name, url string) error {
	return tx.changeUnit(name, func(u *Unit) { u.Charm = url })
}

// SetUnitDead marks a dying unit as dead. It does not check whether the unit's stop hook has run. It returns
// ErrInUse if the unit is alive. Agents call RetireUnit instead, which also requests the unit's removal.
func (tx *Tx) SetUnitDead(name string) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Life == Alive {
		return refuse(ErrInUse, "cannot mark unit %q as dead: it is alive", name)
	}

	u.Life = Dead
	return tx.keys.Put(keys.Unit(name), u)
}

// UnitAddress returns the private or public address of a unit's machine. It is empty if the machine does not
// have one yet.
func (v *View) UnitAddress(name string, public bool) (string, error) {
	u, err := v.Unit(name)
	if err != nil {
		return "", err
	}

	m, err := v.Machine(u.Machine)
	if err != nil {
		return "", fmt.Errorf("cannot find the address of unit %q: %w", name, err)
	}

	if public {
		return m.Addresses.Public, nil
	}
	return m.Addresses.Private, nil
}

// PrefetchUnit reads, in one round trip, the records of a unit, its service and the environment that decide the
// unit's next step, and the list of the service's relations.
func (v *View) PrefetchUnit(unit string) error {
	service, _, err := charm.ParseUnit(unit)
	if err != nil {
		return err
	}

	return v.keys.Prefetch(keyspace.Scope{
		Keys: []string{
			keys.Unit(unit),
			keys.Service(service),
			keys.Environment,
			keys.Config(service),
			keys.Leader(keys.ServiceLeaderName(service)),
			keys.LeaderSettings(service),
			keys.ActionQueue(unit),
			keys.Debug(unit),
			keys.UnitSecrets(unit),
			keys.ServiceSecrets(service),
			keys.UnitStorage(unit),
		},
		Prefixes: []string{keys.ServiceRelations(service)},
	})
}

// ClearResolved removes the operator's answer to an error in the relation, or to the unit's own error if
// relation is NoRelation. It does nothing if the unit is gone.
func (tx *Tx) ClearResolved(unit string, relation int) error {
	u, err := tx.Unit(unit)
	if err != nil {
		return IgnoreNotFound(err)
	}

	if relation == NoRelation {
		u.Resolved = Unresolved
	} else {
		u.ResolvedRelations = maps.Clone(u.ResolvedRelations)
		delete(u.ResolvedRelations, relation)
	}

	return tx.keys.Put(keys.Unit(unit), u)
}
