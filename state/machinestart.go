package state

import "time"

// SetStarted records the instance that runs for a machine, and clears the machine's error and failed attempts.
// If the given addresses are empty, the recorded ones stay. It marks the machine as running only if its agent is
// present; otherwise the agent later marks the machine itself. A machine that is marked as running stays so.
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
	Message  string    // the provider's message
	Attempts int       // the failed starts in a row; 0 if the start is not retried automatically
	RetryAt  time.Time // the time of the next start; zero means never
	Instance string    // an instance that stays recorded, since it may exist; can be empty
}

// SetStartFailure records that a machine's instance could not be started. It replaces the recorded instance
// with the one in the failure.
func (tx *Tx) SetStartFailure(id string, f StartFailure) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.InstanceID = f.Instance
		m.Status = MachineError
		m.Message = Truncate(f.Message, maxMessageBytes)
		m.Attempts = f.Attempts
		m.RetryAt = f.RetryAt
	})
}

// SetStartProgress records the progress of a pending machine's start. It changes nothing for a machine that
// is not pending or has an instance.
func (tx *Tx) SetStartProgress(id, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		if m.Status == MachinePending && m.InstanceID == "" {
			m.Message = Truncate(message, maxMessageBytes)
		}
	})
}

// SetStopped records that the instance of a dead machine no longer exists. It changes nothing for a machine
// that is not dead or has a different instance.
func (tx *Tx) SetStopped(id, instance string) error {
	return tx.changeMachine(id, func(m *Machine) {
		if m.Life == Dead && m.InstanceID == instance {
			m.InstanceID = ""
		}
	})
}

// SetStopFailure records why the instance of a dead machine could not be stopped.
func (tx *Tx) SetStopFailure(id, message string) error {
	return tx.changeMachine(id, func(m *Machine) {
		m.Status = MachineError
		m.Message = Truncate(message, maxMessageBytes)
	})
}
