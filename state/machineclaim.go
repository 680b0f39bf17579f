package state

import (
	"context"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// This file has the claims of machines: who may run a machine's agents. The process that holds a machine's claim may,
// and further processes of the same place, which is a directory on a host. Another process of the place gets the claim
// once the holder's process has ended, and another place only if an operator or the provisioner takes the claim from
// its holder. keyspace/claimrules.go has the record and the rules, and keyspace/claim.go takes and keeps a claim.

type (
	// Holder is the holder of a claim: its place and its process.
	Holder = keyspace.Holder
	// Claimant is a process that takes or joins a claim.
	Claimant = keyspace.Claimant
	// Claim is the right to run a machine's agents.
	Claim = keyspace.Claim
)

// machineClaim returns the key of the machine's claim, the key of its agent's presence, and the check that the
// machine exists.
func machineClaim(machine string) keyspace.ClaimTarget {
	agent := MachineAgent(machine)
	return keyspace.ClaimTarget{
		Key:         keys.Claim(agent),
		Presence:    keys.Presence(agent),
		CheckExists: func(v *keyspace.View) error { return (&View{v}).checkAgentExists(agent) },
	}
}

// TakeClaim gives the claimant the right to run the machine's agents, as [keyspace.Space.TakeClaim] does. It
// returns ErrClaimed if another process holds the claim, and ErrNotFound if there is no such machine.
func (s *State) TakeClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.space.TakeClaim(ctx, machineClaim(machine), by)
}

// JoinClaim returns the claim for another process at the same place as the claim's holder. The process can
// work under the claim although it does not hold the claim itself.
func (s *State) JoinClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.space.JoinClaim(ctx, machineClaim(machine), by)
}

// UpdaterFor returns an Updater under the claim for one agent of the machine. The Updater returns ErrNotFound if
// the agent's machine or unit is gone.
func UpdaterFor(c *Claim, agent string) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return Under(c)(ctx, func(tx *Tx) error {
			// f runs before the check, so that it can prefetch. The check ignores f's writes, so f can remove the
			// agent. A missing agent is the more important error: it can be the cause of f's error.
			updateErr := f(tx)
			if err := tx.checkAgentExisted(agent); err != nil {
				return err
			}
			return updateErr
		})
	}
}

// ClaimHolder returns the current or last holder of the machine's claim. ok is false if the machine was never
// claimed, or its claim has no holder.
func (v *View) ClaimHolder(machine string) (h Holder, ok bool, err error) {
	return v.keys.ClaimHolder(keys.Claim(MachineAgent(machine)))
}

// CheckPlace returns ErrClaimed if the current or last holder of the machine's claim is at a different place
// than here.
func (v *View) CheckPlace(machine string, here Holder) error {
	h, hasHolder, err := v.ClaimHolder(machine)
	if err != nil {
		return err
	}
	if !hasHolder || h.SamePlace(here) {
		return nil
	}
	return refuse(ErrClaimed, "machine %s belongs to %s", machine, h)
}

// ClaimEpoch returns the epoch of the machine's claim, which grows with each new holder. It is 0 if the
// machine was never claimed.
func (v *View) ClaimEpoch(machine string) (int64, error) {
	d, _, err := keyspace.Load[keyspace.ClaimRecord](v.keys, keys.Claim(MachineAgent(machine)))
	return d.Epoch, err
}

// ReassignClaim takes the machine's claim from its holder, which then terminates its hooks and exits. It
// reserves the claim for the new holder. If to is nil, the first process that takes the claim gets it.
// ReassignClaim raises the claim's epoch.
func (tx *Tx) ReassignClaim(machine string, to *Holder) error {
	if _, err := tx.Machine(machine); err != nil {
		return err
	}
	return tx.keys.AssignClaim(keys.Claim(MachineAgent(machine)), to)
}

// FreeClaim lets any agent claim a machine for which a new instance was started. The provisioner calls it
// before it records the instance. epoch is the claim's epoch when the start began. FreeClaim does nothing
// in these cases:
//
//   - The machine already has that instance.
//   - The machine was never claimed.
//   - The claim has a different epoch, for example because the new instance's agent has already taken it.
//   - The machine has no recorded instance, but an agent is present: an operator started it manually.
func (tx *Tx) FreeClaim(machine, instance string, epoch int64) error {
	m, err := tx.Machine(machine)
	if err != nil {
		return err
	}
	if m.InstanceID == instance {
		return nil
	}

	current, err := tx.ClaimEpoch(machine)
	if err != nil {
		return err
	}
	neverClaimed := current == 0
	if neverClaimed || current != epoch {
		return nil
	}

	// The agent of a machine that an operator started must keep its claim.
	if m.InstanceID == "" {
		present, err := tx.IsPresent(MachineAgent(machine))
		if err != nil {
			return err
		}
		if present {
			return nil
		}
	}

	return tx.ReassignClaim(machine, nil) // to nobody, so that the first claimant gets it
}
