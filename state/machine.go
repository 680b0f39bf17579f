package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/constraints"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// The jobs of a machine.
const (
	JobManage = "manage-environment" // hosts the provisioner
	JobUnits  = "host-units"
)

// MachineStatus is the state of a machine's instance.
type MachineStatus string

// The statuses.
const (
	MachinePending MachineStatus = "pending"
	MachineRunning MachineStatus = "running"
	MachineDown    MachineStatus = "down" // a running machine's agent is gone; shown, but never stored
	MachineError   MachineStatus = "error"
)

// Machine is a host for units. Its instance is the provider's machine, container or directory.
type Machine struct {
	ID     string   `json:"-"`
	Series string   `json:"series"`
	Life   Life     `json:"life"`
	Jobs   []string `json:"jobs,omitempty"`
	// InstanceID is the provider's name for the instance. It is empty if the machine does not have an
	// instance.
	InstanceID string        `json:"instance-id,omitempty"`
	Addresses  Addresses     `json:"addresses,omitzero"`
	Status     MachineStatus `json:"status"`
	// Message is the provider's message about an error, or about the progress of a pending machine.
	Message string `json:"message,omitempty"`
	// Attempts counts the starts in a row that have failed with a temporary error.
	Attempts int `json:"attempts,omitempty"`
	// RetryAt is the time of the next automatic start after an error. Zero means never.
	RetryAt time.Time `json:"retry-at,omitzero"`
	// Tools is the binary that the machine's agent runs, as VERSION-SHA8.
	Tools string `json:"tools,omitempty"`

	// Constraints are the constraints on the instance. A machine that was created for a unit has the unit's
	// constraints. An operator's machine has the constraints with which it was added, combined with the
	// environment's.
	Constraints constraints.Value `json:"constraints,omitzero"`
	// Placement is the operator's choice of a host, in the provider's syntax: "user@host:port" for
	// ssh:user@host:port. Empty means any host.
	Placement string `json:"placement,omitempty"`
}

// Addresses are a machine's names or IP addresses.
type Addresses struct {
	Private string `json:"private,omitempty"`
	Public  string `json:"public,omitempty"`
}

// Machine reads a machine. It returns ErrNotFound if there is no such machine.
func (v *View) Machine(id string) (Machine, error) {
	m, ok, err := keyspace.Load[Machine](v.keys, keys.Machine(id))
	m.ID = id
	if err != nil {
		return m, err
	}
	// With a slash, the key is that of another record below a machine.
	if !ok || strings.Contains(id, "/") {
		return m, refuse(ErrNotFound, "machine %q not found", id)
	}

	return m, nil
}

// PrefetchMachine reads, in one round trip, the records that decide a machine agent's next step. It does not
// read lists.
func (v *View) PrefetchMachine(id string) error {
	return v.keys.Prefetch(keyspace.Exactly(keys.Machine(id), keys.Environment, keys.MachineStorage(id)))
}

// Machines reads all machines, sorted by number.
func (v *View) Machines() ([]Machine, error) {
	machines, err := keyspace.LoadChildren(v.keys, keys.Machines, func(m *Machine, id string) { m.ID = id })
	slices.SortFunc(machines, func(a, b Machine) int { return CompareIDs(a.ID, b.ID) })
	return machines, err
}

// MachineIDs lists the ids of all machines, sorted by number. It includes machines whose records do not
// decode.
func (v *View) MachineIDs() (ids []string, err error) {
	kvs, err := v.keys.List(keys.Machines)
	// The list also has other records of a machine, such as its storage, whose keys have a further slash.
	for _, kv := range kvs {
		if id := kv.Key[len(keys.Machines):]; !strings.Contains(id, "/") {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, CompareIDs)
	return ids, err
}

// CompareIDs orders ids by number, and ids that are not numbers as text.
func CompareIDs(a, b string) int {
	an, _ := strconv.Atoi(a)
	bn, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(a, b))
}

// DestroyMachine makes a machine dying, unless it is already dying or dead. A machine without an instance is
// removed at once. It returns ErrInUse for machine 0, and for a machine with units or storage.
func (tx *Tx) DestroyMachine(id string) error {
	m, units, err := tx.readMachine(id)
	switch {
	case err != nil:
		return err
	case id == "0":
		return refuse(ErrInUse,
			"cannot destroy machine 0: it hosts the model; to remove both: juju destroy-model")
	case len(units) > 0:
		return refuse(
			ErrInUse,
			"cannot destroy machine %s: it has units: %s; remove these units first, or use --force",
			id,
			strings.Join(units, ", "),
		)
	}

	s, err := tx.MachineStorage(id)
	if err != nil {
		return err
	}
	if len(s.All) > 0 {
		return refuse(ErrInUse, "cannot destroy machine %s: it has storage, which would be lost with it: %s; remove the storage first, or use --force",
			id, strings.Join(s.All, ", "))
	}
	if m.InstanceID == "" {
		return tx.RemoveMachine(id)
	}

	// A dead machine stays dead.
	if m.Life == Alive {
		m.Life = Dying
	}
	return tx.keys.Put(keys.Machine(id), m)
}

// DestroyMachine is like [Tx.DestroyMachine]. With force it also destroys a machine with units or storage, except
// machine 0. It makes an alive machine dying, and removes the units without waiting for their agents. Then it removes
// a machine without an instance, and marks any other machine as dead, so that the provisioner removes it. If a unit
// cannot be removed, it returns an error and leaves out this last step. It works in batches; after an interruption
// call it again.
func (s *State) DestroyMachine(ctx context.Context, id string, force bool) error {
	// Tx.DestroyMachine refuses machine 0.
	if !force || id == "0" {
		return s.Update(ctx, func(tx *Tx) error { return tx.DestroyMachine(id) })
	}

	units, err := s.markMachineDying(ctx, id)
	if err != nil {
		return err
	}

	var failures []error
	for _, unit := range units {
		if err := s.ForceRemoveUnit(ctx, unit); err != nil && !errors.Is(err, ErrNotFound) {
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("cannot destroy machine %s: %w", id, err)
	}

	// The provisioner may have removed the machine in the meantime.
	return IgnoreNotFound(s.endMachine(ctx, id))
}

// markMachineDying makes an alive machine dying, and returns the names of the units on it.
func (s *State) markMachineDying(ctx context.Context, id string) (units []string, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		m, hosted, err := tx.readMachine(id)
		if err != nil {
			return err
		}

		units = hosted
		if m.Life != Alive {
			return nil
		}
		m.Life = Dying
		return tx.keys.Put(keys.Machine(id), m)
	})
	return units, err
}

// endMachine removes a dying machine without an instance. It marks a machine with an instance as dead, so
// that the provisioner stops the instance and then removes the machine.
func (s *State) endMachine(ctx context.Context, id string) error {
	hasInstance := false
	err := s.Update(ctx, func(tx *Tx) error {
		m, err := tx.Machine(id)
		if err != nil {
			return err
		}
		hasInstance = m.InstanceID != ""
		if !hasInstance {
			return nil
		}
		return tx.SetMachineDead(id)
	})
	if err != nil {
		return err
	}
	if hasInstance {
		return nil
	}

	return RemoveMachine(ctx, s.Update, id)
}

// readMachine reads a machine, and the names of the units on it.
func (v *View) readMachine(id string) (m Machine, units []string, err error) {
	m, err = v.Machine(id)
	if err != nil {
		return m, nil, err
	}
	units, err = v.MachineUnits(id)
	return m, units, err
}

// changeMachine reads a machine, calls change with it, and writes it. It returns ErrNotFound if there is no such
// machine.
func (tx *Tx) changeMachine(id string, change func(m *Machine)) error {
	m, err := tx.Machine(id)
	if err != nil {
		return err
	}
	change(&m)
	return tx.keys.Put(keys.Machine(id), m)
}

// SetMachineTools records the binary that a machine's agent runs.
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

// SetInstance records the instance that the provider started for a machine, with its addresses. If the given
// addresses are empty, the recorded ones stay.
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

// SetMachineStatus records a machine's status and the message of an error. It also clears the number of
// attempts and the time of the next attempt, so that the provisioner starts a pending machine at once.
func (tx *Tx) SetMachineStatus(id string, status MachineStatus, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.Status = status
		m.Message = message
		m.Attempts = 0
		m.RetryAt = time.Time{}
	})
}

// RemoveMachine removes the records of a machine that has no instance, or whose instance is gone. It returns
// ErrInUse if the machine has units, or is alive and has a recorded instance.
//
// Machines with much storage do not fit in one transaction: for them, call the function [RemoveMachine].
func (tx *Tx) RemoveMachine(id string) error {
	if err := tx.checkRemovable(id); err != nil {
		return err
	}
	// Without a limit, no storage is left in the machine's list.
	if _, err := tx.forgetMachineStorage(id, math.MaxInt); err != nil {
		return err
	}

	agent := MachineAgent(id)
	tx.keys.Remove(keys.Machine(id), keys.UnusedMachine(id), keys.FirstUnit(id), keys.Presence(agent),
		keys.Claim(agent))
	return nil
}

// checkRemovable returns ErrInUse if the machine has units, or is alive and has an instance.
func (v *View) checkRemovable(id string) error {
	m, units, err := v.readMachine(id)
	if err != nil {
		return err
	}
	hasLiveInstance := m.Life == Alive && m.InstanceID != ""
	if hasLiveInstance || len(units) > 0 {
		return refuse(ErrInUse, "cannot remove machine %s: it is %s and has %d units", id, m.Life, len(units))
	}

	return nil
}

// RemoveMachine removes a machine as [Tx.RemoveMachine] does, in as many transactions as its storage needs.
// It runs each of them with update.
func RemoveMachine(ctx context.Context, update Updater, id string) error {
	if err := TrimMachineStorage(ctx, update, id); err != nil {
		return err
	}
	return update(ctx, func(tx *Tx) error { return tx.RemoveMachine(id) })
}

// TrimMachineStorage removes the records of storage on a machine, in batches, until a single transaction can
// remove the machine. It returns the same errors as [Tx.RemoveMachine].
func TrimMachineStorage(ctx context.Context, update Updater, id string) error {
	// left is the number of storages on the machine; unknown before the first batch.
	for left := math.MaxInt; left > storageBatch; {
		err := update(ctx, func(tx *Tx) error {
			if err := tx.checkRemovable(id); err != nil {
				return err
			}

			list, err := tx.MachineStorage(id)
			if tx.Skips(err) {
				// The list is damaged. The machine's removal then removes only the list, which needs no batches.
				left = 0
				return nil
			}
			if err != nil {
				return err
			}

			left = len(list.All)
			if left <= storageBatch {
				return nil // the machine's removal removes the rest
			}

			left, err = tx.forgetMachineStorage(id, storageBatch)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// NextMachine returns the number of the next machine. Numbers start at 0, so it is also how many machines
// have been added so far.
func (v *View) NextMachine() (int, error) {
	return keyspace.LoadOrZero[int](v.keys, keys.MachineCounter)
}

// IsMachineID reports whether id belongs to a machine that exists or has existed. next is the number of the next
// machine.
func IsMachineID(id string, next int) bool {
	n, err := strconv.Atoi(id)
	return err == nil && strconv.Itoa(n) == id && n >= 0 && n < next
}
