package state

import (
	"context"

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

// TakeClaim makes the claimant the one that runs the machine's agents, as [keyspace.Space.TakeClaim] does.
// It returns ErrClaimed if another holds the claim, and ErrNotFound if there is no such machine.
func (s *State) TakeClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.space.TakeClaim(ctx, machineClaim(machine), by)
}

// JoinClaim is TakeClaim for a process beside the one that runs the machine: it works
// under the claim of its place, whichever process of that place holds it.
func (s *State) JoinClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.space.JoinClaim(ctx, machineClaim(machine), by)
}

// UpdaterFor returns the Updater under the claim for one agent of the machine. The Updater returns
// ErrNotFound once the agent's unit, or the machine, is gone.
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

// ClaimHolder returns the present or last holder of the machine's claim; ok is false if there was none.
func (v *View) ClaimHolder(machine string) (h Holder, ok bool, err error) {
	return v.keys.ClaimHolder(keys.Claim(MachineAgent(machine)))
}

// CheckPlace returns ErrClaimed if another place holds the machine's claim.
func (v *View) CheckPlace(machine string, here Holder) error {
	h, held, err := v.ClaimHolder(machine)
	if err != nil || !held || h.SamePlace(here) {
		return err
	}
	return refuse(ErrClaimed, "machine %s belongs to %s", machine, h)
}

// ClaimEpoch returns how often the machine was claimed; 0: never.
func (v *View) ClaimEpoch(machine string) (int64, error) {
	d, _, err := keyspace.Load[keyspace.ClaimRecord](v.keys, keys.Claim(MachineAgent(machine)))
	return d.Epoch, err
}

// ReassignClaim takes the machine's claim from its holder, who then ends its hooks and itself. It keeps the
// claim for the new holder, or if to is nil for the first one to take it. It raises the claim's epoch.
func (tx *Tx) ReassignClaim(machine string, to *Holder) error {
	if _, err := tx.Machine(machine); err != nil {
		return err
	}
	return tx.keys.AssignClaim(keys.Claim(MachineAgent(machine)), to)
}

// FreeClaim lets any agent claim a machine for which a new instance was started. The provisioner calls it
// before it records the instance. epoch is the claim's epoch when the start began. FreeClaim does nothing
// if
//
// * the machine has that instance already,
// * the claim has a later epoch: the new instance's agent has taken it since,
// * the machine has no recorded instance, but an agent that lives: an operator started that by hand.
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
