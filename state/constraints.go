package state

import (
	"errors"
	"fmt"
	"time"

	"bijou/state/constraints"
	"bijou/state/keys"
)

// SetConstraints replaces the environment's constraints whole. Units and machines
// that there are keep theirs.
func (tx *Tx) SetConstraints(c constraints.Value) error {
	return tx.changeEnvironment(func(e *Environment) { e.Constraints = c })
}

// SetServiceConstraints replaces a service's constraints whole. Units that there
// are keep theirs. A subordinate can have none. ErrNotFound, ErrDead.
func (tx *Tx) SetServiceConstraints(service string, c constraints.Value) error {
	s, err := tx.aliveService(service)
	if err != nil {
		return err
	}
	s.Constraints = c
	if err := s.checkConstraints(); err != nil {
		return fmt.Errorf("cannot set constraints of service %q: %w", service, err)
	}
	return tx.keys.Put(keys.Service(service), s)
}

// checkConstraints refuses constraints of a subordinate, whose units have no choice of
// machines.
func (s Service) checkConstraints() error {
	if s.Subordinate && s.Constraints != (constraints.Value{}) {
		return errors.New("a subordinate cannot have constraints: its units live where their principals do")
	}
	return nil
}

// ResolveMachine lets a machine whose instance could not be started be tried
// again, and with constraints replaces its own whole. ErrNotFound; ErrNotInError,
// and nothing is changed.
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
