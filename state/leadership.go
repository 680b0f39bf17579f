package state

import (
	"context"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Campaign does what Session.Campaign does for a leadership of the environment, not of a service.
func Campaign(ctx context.Context, s *Session, what string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(what), keyspace.Candidate{})
}

// CampaignToProvision is Campaign for the one provisioner that acts, which carries out what agents
// request: package requests.
func CampaignToProvision(ctx context.Context, s *Session) (*Leadership, error) {
	return s.Campaign(ctx, keys.ProvisionerLeader, keyspace.Candidate{Serves: true})
}

// CampaignFor blocks until this session leads a service, in the name of one of the units
// that run under it. One campaign a service and session is enough, however many units
// there are: SetLeaderUnit says which of them leads.
func CampaignFor(ctx context.Context, s *Session, service, unit string) (*Leadership, error) {
	return s.Campaign(ctx, keys.Leader(keys.ServiceLeaderName(service)), keyspace.Candidate{Unit: unit})
}

// Leader returns the unit that leads a service; empty if none does.
func (v *View) Leader(service string) (unit string, err error) {
	p, _, err := keyspace.Load[keyspace.Presence](v.keys, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit, err
}

// CheckLeader makes the commit conditional on a unit leading its service. It returns ErrNotLeader if the
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
