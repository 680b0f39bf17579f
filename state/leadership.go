package state

import (
	"context"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Campaign blocks until the session leads one of the environment's tasks, as [Session.Campaign] does.
func Campaign(ctx context.Context, s *Session, what string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(what), keyspace.Candidate{})
}

// CampaignToProvision is Campaign for the provisioner's task. The leading provisioner also carries out the
// requests of agents, with package requests.
func CampaignToProvision(ctx context.Context, s *Session) (*Leadership, error) {
	return s.Campaign(ctx, keys.ProvisionerLeader, keyspace.Candidate{Serves: true})
}

// CampaignFor blocks until the session leads a service, on behalf of one of the units whose agents use the
// session. A session needs only one campaign for each service: [SetLeaderUnit] chooses the unit that leads. CampaignFor
// returns [ErrDead] or [ErrNotFound] if the unit is dead or gone when it could win.
func CampaignFor(ctx context.Context, s *Session, service, unit string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(keys.ServiceLeaderName(service)), candidate(unit))
}

// SetLeaderUnit passes the leadership of a service to another unit of the session. It returns [ErrDead] or [ErrNotFound]
// if that unit is dead or gone, and [ErrSessionLost] if the session has lost the leadership.
func SetLeaderUnit(ctx context.Context, lead *Leadership, unit string) error {
	return lead.Pass(ctx, candidate(unit))
}

// candidate returns the unit as a candidate. The unit can become the leader only if it exists and is not dead.
func candidate(unit string) keyspace.Candidate {
	return keyspace.Candidate{Unit: unit, Check: func(tx *keyspace.Tx) error {
		u, err := keyspace.LoadExisting[Unit](tx, keys.Unit(unit), "unit %q not found", unit)
		if err == nil && u.Life == Dead {
			err = refuse(ErrDead, "unit %q is dead", unit)
		}
		return err
	}}
}

// Leader returns the unit that leads a service. It returns "" if no unit leads the service.
func (v *View) Leader(service string) (unit string, err error) {
	p, _, err := keyspace.Load[keyspace.Presence](v.keys, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit, err
}

// CheckLeader makes the commit conditional on the unit leading its service. It returns ErrNotLeader if the
// unit does not lead.
func (tx *Tx) CheckLeader(service, unit string) error {
	leader, err := tx.Leader(service)
	if err != nil {
		return err
	}
	if leader != unit {
		return refuse(ErrNotLeader, "unit %q does not lead application %q", unit, service)
	}

	return nil
}
