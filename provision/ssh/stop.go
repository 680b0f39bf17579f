package ssh

import (
	"context"
	"errors"
	"fmt"
)

// Stop ends the agent, with what its hooks have left running, and removes all that
// is the environment's from the host; what charms have installed there stays. A
// host that cannot be reached is an error: nobody knows what runs there.
func (p *Provider) Stop(ctx context.Context, id string) error {
	t, machine, err := parseID(id)
	if err != nil {
		return err
	}
	defer p.lockMachine(machine)()
	if err := p.stopMachine(ctx, t, machine); err != nil {
		return fmt.Errorf("cannot stop machine %s: %w", machine, err)
	}
	return nil
}

func (p *Provider) stopMachine(ctx context.Context, t target, machine string) error {
	t, err := p.withKnownKey(t, machine)
	if err != nil {
		return err
	}
	c, err := p.dial(ctx, t)
	if err != nil && p.isGivenUp(machine) {
		return p.removeRecord(t, machine)
	}
	if err != nil {
		return errors.Join(withHints(err, fmt.Sprintf("it is tried again; if the host is gone for good, empty this file: truncate -s 0 %q", p.ledgerPath(machine))),
			p.recordDoubt(t, machine))
	}
	defer c.close()
	h, err := p.inspectHost(ctx, c)
	if err != nil {
		return err
	}
	if h.marked && h.mark.Environment == p.env.UUID && h.mark.Machine == machine {
		if _, err := c.run(ctx, "end", nil, p.root, p.env.UUID, machine, h.mark.String()); err != nil {
			return hostError("clean up", t, err)
		}
	}
	return p.removeRecord(t, machine)
}

// recordDoubt writes down that a host may be the machine, if nothing else is: it is listed from
// then on, and there is a file for the operator to empty.
func (p *Provider) recordDoubt(t target, machine string) error {
	records, err := p.readLedger()
	if _, there := records[machine]; err != nil || there {
		return err
	}
	return p.writeRecord(t, machine, "")
}

func (p *Provider) withKnownKey(t target, machine string) (target, error) {
	pool, err := p.readPool()
	if err != nil {
		return t, err
	}
	records, err := p.readLedger()
	if err != nil {
		return t, err
	}
	if r, ok := records[machine]; ok && r.Host == t.String() {
		t.Fingerprint = r.Fingerprint
	}
	return poolMember(pool, t).target, nil
}
