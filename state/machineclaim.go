package state

import "context"

func (s *State) machineClaim(machine string) claimTarget {
	agent := MachineAgent(machine)
	return claimTarget{s, claimKey(agent), presenceKey(agent), func(v *View) error { return v.checkAgentExists(agent) }}
}

// TakeClaim makes the claimant the one that runs the machine's agents. Whoever held the
// claim before commits nothing more.
//
// It is granted to the place that holds it if the process there is gone; where that
// process cannot be seen, TakeClaim waits for as long as a session lasts. ErrClaimed: it
// is another place's, whether anybody lives there or not, or that process lives.
// ErrNotFound: there is no such machine.
func (s *State) TakeClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.machineClaim(machine).takeClaim(ctx, by)
}

// JoinClaim is TakeClaim for a process beside the one that runs the machine: it works
// under the claim of its place, whichever process of that place holds it.
func (s *State) JoinClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	c := &Claim{target: s.machineClaim(machine), claimant: by, joining: true}
	return c, c.acquire(ctx)
}

// UpdaterFor returns Update for one agent of the machine: ErrNotFound once its unit, or the
// machine, is gone.
func (c *Claim) UpdaterFor(agent string) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return c.Update(ctx, func(tx *Tx) error {
			if err := tx.checkAgentExists(agent); err != nil {
				return err
			}
			return f(tx)
		})
	}
}

// ClaimHolder returns who holds the machine's claim, or held it last; ok is false if
// nobody does.
func (v *View) ClaimHolder(machine string) (h Holder, ok bool, err error) {
	d, _, err := load[claimRecord](v, claimKey(MachineAgent(machine)))
	if err != nil || d.Holder == nil {
		return Holder{}, false, err
	}
	return *d.Holder, true, nil
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
	d, _, err := load[claimRecord](v, claimKey(MachineAgent(machine)))
	return d.Epoch, err
}

// AssignClaim takes the machine's claim from its holder, who ends its hooks and itself,
// and keeps it for that place, or with nil for whoever comes first. It raises the
// claim's epoch.
func (tx *Tx) AssignClaim(machine string, to *Holder) error {
	if _, err := tx.Machine(machine); err != nil {
		return err
	}
	key := claimKey(MachineAgent(machine))
	d, _, err := load[claimRecord](tx.View, key)
	if err != nil {
		return err
	}
	n := d.nextRecord(to, 0)
	n.FormerBoots = nil
	return tx.put(key, n)
}

// FreeClaim lets whoever comes first claim a machine for which another instance was
// started than is recorded, unless it was claimed since that epoch: by that instance.
// Where none was recorded, an agent that lives was started by hand, and stays.
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
	return tx.AssignClaim(machine, nil)
}
