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

// The answers: the failed hook counts as done, or is run again.
const (
	Unresolved    Resolved = ""
	ResolvedDone  Resolved = "done"
	ResolvedRetry Resolved = "retry"
)

// Unit is one instance of a service.
type Unit struct {
	Name    string `json:"-"`
	Service string `json:"-"`
	Number  int    `json:"-"`

	Charm   string `json:"charm,omitempty"` // the URL of the charm that is deployed; empty before the first
	Machine string `json:"machine"`         // its id
	Series  string `json:"series"`
	Life    Life   `json:"life"`

	Place string `json:"place,omitempty"` // as Placement's

	// Constraints are the service's over the environment's, as they were when the
	// unit was added. They are for placing it, and shown to nobody.
	Constraints constraints.Value `json:"constraints,omitzero"`

	Principal    string   `json:"principal,omitempty"`    // of a subordinate: the unit that it came with
	Subordinates []string `json:"subordinates,omitempty"` // the units that came with this one

	Resolved          Resolved         `json:"resolved,omitempty"`           // of the unit's own error
	ResolvedRelations map[int]Resolved `json:"resolved-relations,omitempty"` // of relations in error, by id

	// Interrupt is the id of the run that an operator has asked to be ended.
	Interrupt string `json:"interrupt,omitempty"`

	Status WorkloadStatus `json:"status,omitzero"`
	// ActiveWith is the URL of the charm with which the unit has said last that it is active.
	ActiveWith string `json:"active-with,omitempty"`

	Workload WorkloadVersion `json:"workload,omitzero"`
}

// WorkloadVersion is the version of its workload that a unit has set.
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

// workloadActive is the status of a unit whose workload does what it should.
const workloadActive = "active"

// Identity tells one version from the next.
func (w WorkloadVersion) Identity() any { return w.Version }

// Identity tells one status from the next: a charm sets it whole.
func (w WorkloadStatus) Identity() any { return w.Since.UnixNano() }

// Unit reads a unit. ErrNotFound.
func (v *View) Unit(name string) (Unit, error) {
	service, number, err := charm.ParseUnit(name)
	if err != nil {
		return Unit{}, err
	}
	u, err := keyspace.LoadExisting[Unit](v.keys, keys.Unit(name), "unit %q not found", name)
	u.Name = name
	u.Service = service
	u.Number = number
	return u, err
}

// Units reads the units of a service (empty: of all), by service and number.
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

// DecodeUnits picks the units among keys below keys.Units that the view has read, and sorts them. It goes on without a
// record that does not decode.
func (v *View) DecodeUnits(kvs []keyspace.KeyValue) (units []Unit, err error) {
	for _, kv := range kvs {
		service, number, err := charm.ParseUnit(kv.Key[len(keys.Units):])
		if err != nil {
			continue
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

// unitNames picks the units' names behind the prefix that all of the keys have.
func unitNames(kvs []keyspace.KeyValue, prefix string) (names []string) {
	for _, kv := range kvs {
		if name := kv.Key[len(prefix):]; charm.IsUnit(name) {
			names = append(names, name)
		}
	}

	charm.SortUnits(names)
	return names
}

// MachineUnits lists the names of the units on a machine, by service and number.
func (v *View) MachineUnits(id string) ([]string, error) {
	kvs, err := v.keys.List(keys.MachineUnits(id))
	return unitNames(kvs, keys.MachineUnits(id)), err
}

func (tx *Tx) changeUnit(name string, change func(u *Unit)) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	change(&u)
	return tx.keys.Put(keys.Unit(name), u)
}

// SetUnitStatus sets a unit's workload status, with its message truncated.
func (tx *Tx) SetUnitStatus(name string, w WorkloadStatus) error {
	w.Message = Truncate(w.Message, maxMessageBytes)
	return tx.changeUnit(name, func(u *Unit) {
		u.Status = w
		if w.Status == workloadActive {
			u.ActiveWith = u.Charm
		}
	})
}

// SetWorkloadVersion records which version of its workload a unit runs since a time. The
// same version as before writes nothing.
func (tx *Tx) SetWorkloadVersion(name, version string, since time.Time) error {
	u, err := tx.Unit(name)
	if err != nil || u.Workload.Version == version {
		return err
	}
	u.Workload = WorkloadVersion{Version: Truncate(version, maxMessageBytes), Since: since.UTC()}
	return tx.keys.Put(keys.Unit(name), u)
}

// SetUnitCharm records the charm that is deployed on a unit.
func (tx *Tx) SetUnitCharm(name, url string) error {
	return tx.changeUnit(name, func(u *Unit) { u.Charm = url })
}

// SetUnitDead marks a dying unit as dead, after its stop hook has run. It returns ErrInUse if the unit is
// alive. Agents call RetireUnit.
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

// UnitAddress returns the private or public address of a unit's machine, empty as long
// as the machine has none.
func (v *View) UnitAddress(name string, public bool) (string, error) {
	u, err := v.Unit(name)
	if err != nil {
		return "", err
	}

	m, err := v.Machine(u.Machine)
	address := m.Addresses.Private
	if public {
		address = m.Addresses.Public
	}
	if err != nil {
		return address, fmt.Errorf("cannot find the address of unit %q: %w", name, err)
	}

	return address, nil
}

// PrefetchUnit reads, in one round trip, the records that decide a unit's next step: its own and its
// service's. Lists take round trips of their own.
func (v *View) PrefetchUnit(unit string) error {
	service, _, err := charm.ParseUnit(unit)
	if err != nil {
		return err
	}

	return v.keys.Prefetch(keys.Unit(unit), keys.Service(service), keys.Environment, keys.Config(service),
		keys.Leader(keys.ServiceLeaderName(service)), keys.LeaderSettings(service), keys.ActionQueue(unit), keys.Debug(unit),
		keys.UnitSecrets(unit), keys.ServiceSecrets(service), keys.UnitStorage(unit))
}

// ClearResolved removes the answer to the unit's error, or with a relation's id to the
// relation's; relation is NoRelation for the unit's own.
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
