package state

import "time"

// SetStarted records the instance that runs for a machine and clears the machine's error. Empty addresses
// leave the recorded ones. It marks the machine as running only if its agent is present; otherwise the
// agent does that itself.
func (tx *Tx) SetStarted(id, instance string, a Addresses) error {
	if err := tx.SetInstance(id, instance, a); err != nil {
		return err
	}
	present, err := tx.IsPresent(MachineAgent(id))
	if err != nil {
		return err
	}

	return tx.changeMachine(id, func(m *Machine) {
		switch {
		case present:
			m.Status = MachineRunning
		case m.Status != MachineRunning:
			m.Status = MachinePending
		}

		m.Message = ""
		m.Attempts = 0
		m.RetryAt = time.Time{}
	})
}

// StartFailure describes why no instance runs for a machine.
type StartFailure struct {
	Message  string    // the provider's
	Attempts int       // how many have failed for the moment; 0: it is not tried again by itself
	RetryAt  time.Time // when it is; zero: never
	Instance string    // what it still has recorded, for it may be there; empty: none
}

// SetStartFailure records that a machine's instance could not be started. It has
// none from then on but the one that the failure names.
func (tx *Tx) SetStartFailure(id string, f StartFailure) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.InstanceID, m.Status = f.Instance, MachineError
		m.Message = Truncate(f.Message, maxMessageBytes)
		m.Attempts = f.Attempts
		m.RetryAt = f.RetryAt
	})
}

// SetStartProgress records how far the start of a pending machine is. For any
// other it does nothing.
func (tx *Tx) SetStartProgress(id, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		if m.Status == MachinePending && m.InstanceID == "" {
			m.Message = Truncate(message, maxMessageBytes)
		}
	})
}

// SetStopped records that nothing is left of the instance that a dead machine had.
// Of a machine that is not dead, or has another one, it changes nothing.
func (tx *Tx) SetStopped(id, instance string) error {
	return tx.changeMachine(id, func(m *Machine) {
		if m.Life == Dead && m.InstanceID == instance {
			m.InstanceID = ""
		}
	})
}

// SetStopFailure records why the instance of a dead machine is still there.
func (tx *Tx) SetStopFailure(id, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.Status, m.Message = MachineError, Truncate(message, maxMessageBytes)
	})
}
