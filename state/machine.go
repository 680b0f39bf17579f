package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// The jobs of a machine: to host the provisioner, to host units.
const (
	JobManage = "manage-environment"
	JobUnits  = "host-units"
)

// MachineStatus is the state of a machine's instance.
type MachineStatus string

// The statuses. Down is shown when the agent of a running machine is gone; it is not stored.
const (
	MachinePending MachineStatus = "pending"
	MachineRunning MachineStatus = "running"
	MachineDown    MachineStatus = "down"
	MachineError   MachineStatus = "error"
)

// Machine hosts units.
type Machine struct {
	ID         string        `json:"-"`
	Series     string        `json:"series"`
	Life       Life          `json:"life"`
	Jobs       []string      `json:"jobs,omitempty"`
	InstanceID string        `json:"instance-id,omitempty"` // the provider's name for it; empty: not provisioned
	Addresses  Addresses     `json:"addresses,omitzero"`
	Status     MachineStatus `json:"status"`
	Message    string        `json:"message,omitempty"`  // the provider's: of an error, or how far a pending one is
	Attempts   int           `json:"attempts,omitempty"` // starts that have failed for the moment, since one has not
	RetryAt    time.Time     `json:"retry-at,omitzero"`  // of an error: when the start is tried again by itself; zero: never
	Tools      string        `json:"tools,omitempty"`    // VERSION-SHA8 of the binary that its agent runs

	// Constraints hold for its instance: those of the unit that it
	// was made for, or those that it was added with over the environment's.
	Constraints constraints.Value `json:"constraints,omitzero"`
	// Placement is where the operator wants it, in the words of the environment's
	// provider: user@host:port, of ssh:user@host:port. Empty: anywhere.
	Placement string `json:"placement,omitempty"`
}

// Addresses are a machine's names or IP addresses.
type Addresses struct {
	Private string `json:"private,omitempty"`
	Public  string `json:"public,omitempty"`
}

// Machine reads a machine. ErrNotFound.
func (v *View) Machine(id string) (Machine, error) {
	m, ok, err := keyspace.Load[Machine](v.keys, keys.Machine(id))
	if err == nil && (!ok || strings.Contains(id, "/")) {
		err = refuse(ErrNotFound, "machine %q not found", id)
	}
	m.ID = id
	return m, err
}

// PrefetchMachine reads in one round trip the records by which a machine's agent decides, but no lists.
func (v *View) PrefetchMachine(id string) error {
	return v.keys.Prefetch(keys.Machine(id), keys.Environment, keys.MachineStorage(id))
}

// Machines reads all machines, by number.
func (v *View) Machines() ([]Machine, error) {
	machines, err := keyspace.LoadChildren(v.keys, keys.Machines, func(m *Machine, id string) { m.ID = id })
	slices.SortFunc(machines, func(a, b Machine) int { return CompareIDs(a.ID, b.ID) })
	return machines, err
}

// MachineIDs lists all machines, also one whose record does not decode, by number.
func (v *View) MachineIDs() (ids []string, err error) {
	kvs, err := v.keys.List(keys.Machines)
	for _, kv := range kvs {
		if id := kv.Key[len(keys.Machines):]; !strings.Contains(id, "/") {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, CompareIDs)
	return ids, err
}

// CompareIDs orders ids by number where they are numbers.
func CompareIDs(a, b string) int {
	an, _ := strconv.Atoi(a)
	bn, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(a, b))
}

// DestroyMachine makes a machine dying. It removes one without an instance at once. It returns ErrInUse for
// machine 0, and for a machine with units or storage.
func (tx *Tx) DestroyMachine(id string) error {
	m, units, err := tx.readMachine(id)
	switch {
	case err != nil:
		return err
	case id == "0":
		return refuse(ErrInUse,
			"cannot destroy machine 0: it hosts the model; juju destroy-model removes both")
	case len(units) > 0:
		return refuse(
			ErrInUse,
			"cannot destroy machine %s: it has units: %s; destroy them first, or use --force",
			id,
			strings.Join(units, ", "),
		)
	}

	if s, err := tx.MachineStorage(id); err != nil || len(s.All) > 0 {
		return cmp.Or(err, refuse(ErrInUse, "cannot destroy machine %s: it has storage, which would be lost with it: %s; remove the storage first, or use --force",
			id, strings.Join(s.All, ", ")))
	}
	if m.InstanceID == "" {
		return tx.RemoveMachine(id)
	}

	if m.Life == Alive {
		m.Life = Dying
	}
	return tx.keys.Put(keys.Machine(id), m)
}

// DestroyMachine is like [Tx.DestroyMachine]. With force it also removes the machine's units, without
// waiting for their agents, and marks the machine dead so that the provisioner removes it. It works in
// batches; after an interruption call it again.
func (s *State) DestroyMachine(ctx context.Context, id string, force bool) error {
	if !force || id == "0" {
		return s.Update(ctx, func(tx *Tx) error { return tx.DestroyMachine(id) })
	}

	var units []string
	err := s.Update(ctx, func(tx *Tx) (err error) {
		var m Machine
		// A dead one has its instance stopped already.
		if m, units, err = tx.readMachine(id); err == nil && m.Life == Alive {
			m.Life = Dying
			err = tx.keys.Put(keys.Machine(id), m)
		}

		return err
	})
	if err != nil {
		return err
	}

	for _, unit := range units {
		if err := s.ForceRemoveUnit(ctx, unit); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("cannot destroy machine %s: %w", id, err)
		}
	}

	err = s.Update(ctx, func(tx *Tx) error {
		switch m, err := tx.Machine(id); {
		case err != nil:
			return err
		case m.InstanceID == "":
			return tx.RemoveMachine(id)
		}

		return tx.SetMachineDead(id) // for the provisioner to remove
	})

	return IgnoreNotFound(err) // the provisioner was quicker
}

// readMachine reads a machine, and which units are on it.
func (v *View) readMachine(id string) (m Machine, units []string, err error) {
	if m, err = v.Machine(id); err == nil {
		units, err = v.MachineUnits(id)
	}
	return m, units, err
}

func (tx *Tx) changeMachine(id string, change func(m *Machine)) error {
	m, err := tx.Machine(id)
	if err != nil {
		return err
	}
	change(&m)
	return tx.keys.Put(keys.Machine(id), m)
}

// SetMachineTools records which binary a machine's agent runs.
func (tx *Tx) SetMachineTools(id, name string) error {
	return tx.changeMachine(id, func(m *Machine) { m.Tools = name })
}

// SetMachineDead marks a dying machine as dead, so that the provisioner stops its instance. It returns
// ErrInUse if the machine is alive or has units.
func (tx *Tx) SetMachineDead(id string) error {
	m, units, err := tx.readMachine(id)
	if err != nil {
		return err
	}
	if m.Life == Alive || len(units) > 0 {
		return refuse(ErrInUse, "cannot mark machine %s as dead: it is %s and has %d units", id, m.Life,
			len(units))
	}

	m.Life = Dead
	return tx.keys.Put(keys.Machine(id), m)
}

// SetInstance records the instance that the provider started for a machine, with
// the addresses that it knows (empty: as they are).
func (tx *Tx) SetInstance(id, instance string, a Addresses) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.InstanceID = instance
		m.Addresses = Addresses{cmp.Or(a.Private, m.Addresses.Private), cmp.Or(a.Public, m.Addresses.Public)}
	})
}

// SetAddresses records a machine's addresses.
func (tx *Tx) SetAddresses(id string, a Addresses) error {
	return tx.changeMachine(id, func(m *Machine) { m.Addresses = a })
}

// SetMachineStatus records how far a machine is, with the message of an error. It forgets when a failed
// start will be tried again: the provisioner starts a machine that is pending again at once.
func (tx *Tx) SetMachineStatus(id string, status MachineStatus, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.Status, m.Message = status, message
		m.Attempts, m.RetryAt = 0, time.Time{}
	})
}

// RemoveMachine removes a machine without units, whose instance is gone. It returns ErrInUse if the machine
// is alive and provisioned, or has units.
func (tx *Tx) RemoveMachine(id string) error {
	m, units, err := tx.readMachine(id)
	if err != nil {
		return err
	}
	if m.Life == Alive && m.InstanceID != "" || len(units) > 0 {
		return refuse(ErrInUse, "cannot remove machine %s: it is %s and has %d units", id, m.Life, len(units))
	}
	if err := tx.forgetMachineStorage(id); err != nil {
		return err
	}

	agent := MachineAgent(id)
	tx.keys.Remove(keys.Machine(id), keys.UnusedMachine(id), keys.FirstUnit(id), keys.Presence(agent),
		keys.Claim(agent))
	return nil
}

// NextMachine returns the number that the next machine gets; as many were given, to machine 0
// first.
func (v *View) NextMachine() (int, error) {
	return keyspace.LoadOrZero[int](v.keys, keys.MachineCounter)
}

// IsMachineID reports whether an id is of a machine that is or was, given the next
// machine's number.
func IsMachineID(id string, next int) bool {
	n, err := strconv.Atoi(id)
	return err == nil && strconv.Itoa(n) == id && n >= 0 && n < next
}
