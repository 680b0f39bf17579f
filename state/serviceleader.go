package state

import (
	"context"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// CampaignFor blocks until this session leads a service, in the name of one of the units
// that run under it. One campaign a service and session is enough, however many units
// there are: Elect chooses which of them leads.
func (s *Session) CampaignFor(ctx context.Context, service, unit string) (*Leadership, error) {
	return s.campaign(ctx, keys.ServiceLeaderName(service), unit)
}

// SetLeaderUnit makes another unit of this session the leader. ErrSessionLost: the
// session does not lead any more.
func (l *Leadership) SetLeaderUnit(ctx context.Context, unit string) error {
	return l.Rename(ctx, unit)
}

// Leader returns the unit that leads a service; empty if none does.
func (v *View) Leader(service string) (unit string, err error) {
	p, _, err := keyspace.Load[keyspace.Presence](v.keys, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit, err
}

// CheckLeader makes the commit conditional on a unit leading its service.
// ErrNotLeader.
func (tx *Tx) CheckLeader(service, unit string) error {
	leader, err := tx.Leader(service)
	if err == nil && leader != unit {
		err = refuse(ErrNotLeader, "unit %q does not lead service %q", unit, service)
	}
	return err
}

// LeaderSettings reads the settings that a service's leader has for its peers; empty if
// there are none.
func (v *View) LeaderSettings(service string) (Settings, error) {
	s, _, err := v.readSettings(keys.LeaderSettings(service))
	return s, err
}

// LeaderSettingsVersion reads only the version of the leader settings; 0 if there are
// none.
func (v *View) LeaderSettingsVersion(service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.LeaderSettings(service))
	return doc.Version, err
}

// MergeLeaderSettings changes single keys of the leader settings, as MergeSettings does,
// in the name of a unit. ErrNotLeader; ErrNotFound if the service is gone.
func (tx *Tx) MergeLeaderSettings(service, unit string, changes map[string]*string) ([]Change, error) {
	if err := tx.CheckLeader(service, unit); err != nil {
		return nil, err
	}
	if _, err := tx.Service(service); err != nil {
		return nil, fmt.Errorf("cannot change leader settings: %w", err)
	}
	return tx.mergeSettingsNode(keys.LeaderSettings(service), changes)
}
