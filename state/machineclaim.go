package state

import (
	"context"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

type (
	// Holder is the holder of a claim: its place, and its process.
	Holder = keyspace.Holder
	// Claimant asks for a claim.
	Claimant = keyspace.Claimant
	// Claim is the right to run a machine's agents.
	Claim = keyspace.Claim
)

func machineClaim(machine string) keyspace.ClaimTarget {
	agent := MachineAgent(machine)
	return keyspace.ClaimTarget{
		Key: keys.Claim(agent), Presence: keys.Presence(agent),
		CheckExists: func(keys *keyspace.View) error { return (&View{keys}).checkAgentExists(agent) },
	}
}

// TakeClaim is keyspace.Space.TakeClaim: it makes the claimant the one that runs the machine's
// agents. ErrClaimed; ErrNotFound: there is no such machine.
func (s *State) TakeClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.Space.TakeClaim(ctx, machineClaim(machine), by)
}

// JoinClaim is TakeClaim for a process beside the one that runs the machine: it works
// under the claim of its place, whichever process of that place holds it.
func (s *State) JoinClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.Space.JoinClaim(ctx, machineClaim(machine), by)
}

// UpdaterFor returns the Updater under the claim for one agent of the machine: ErrNotFound once its
// unit, or the machine, is gone.
func UpdaterFor(c *Claim, agent string) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return Under(c)(ctx, func(tx *Tx) error {
			ferr := f(tx) // first, so that it can prefetch
			if err := tx.checkAgentExisted(agent); err != nil {
				return err
			}
			return ferr
		})
	}
}

// ClaimHolder returns who holds the machine's claim, or held it last; ok is false if nobody does.
func (v *View) ClaimHolder(machine string) (h Holder, ok bool, err error) {
	return v.keys.ClaimHolder(keys.Claim(MachineAgent(machine)))
}

// CheckPlace returns ErrClaimed if another place holds the machine's claim.
func (v *View) CheckPlace(machine string, here Holder) error {
	h, held, err := v.ClaimHolder(machine)
	if err != nil || !held || h.SamePlace(here) {
		return err
	}
	return refuse(ErrClaimed, "machine %s is that of %s", machine, h)
}

// ClaimEpoch returns how often the machine was claimed; 0: never.
func (v *View) ClaimEpoch(machine string) (int64, error) {
	d, _, err := keyspace.Load[keyspace.ClaimRecord](v.keys, keys.Claim(MachineAgent(machine)))
	return d.Epoch, err
}

// ReassignClaim takes the machine's claim from its holder, who ends its hooks and itself, and keeps
// it for that place, or with nil for whoever comes first. It raises the claim's epoch.
func (tx *Tx) ReassignClaim(machine string, to *Holder) error {
	if _, err := tx.Machine(machine); err != nil {
		return err
	}
	return tx.keys.AssignClaim(keys.Claim(MachineAgent(machine)), to)
}

// FreeClaim is called for an instance that was started for a machine when its claim had that epoch,
// before the instance is recorded: if it is a new one, whoever comes first may claim the machine. A
// claim of a later epoch is that instance's own, and stays; so does that of an agent that lives on a
// machine without a recorded instance, since it was started by hand.
func (tx *Tx) FreeClaim(machine, instance string, epoch int64) error {
	m, err := tx.Machine(machine)
	if err != nil || m.InstanceID == instance {
		return err
	}
	now, err := tx.ClaimEpoch(machine)
	if err != nil || now == 0 || now != epoch {
		return err
	}
	if m.InstanceID == "" {
		if lives, err := tx.IsPresent(MachineAgent(machine)); err != nil || lives {
			return err
		}
	}
	return tx.ReassignClaim(machine, nil)
}

// SetStarted records the instance that runs for a machine, with the addresses that the
// provider knows (empty: as they are), and that nothing is wrong with it any more. The
// machine's agent records when it runs itself, and one that is there has done so.
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
		m.Message, m.Attempts, m.RetryAt = "", 0, time.Time{}
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
		m.Message, m.Attempts, m.RetryAt = Truncate(f.Message, maxMessageBytes), f.Attempts, f.RetryAt
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
	return tx.changeMachine(id, func(m *Machine) { m.Status, m.Message = MachineError, Truncate(message, maxMessageBytes) })
}
