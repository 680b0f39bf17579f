package state

import (
	"context"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SessionTTL is how long a process may be silent before its agents count as gone, and
// its leaderships as free.
const SessionTTL = keyspace.SessionTTL

// Session is the proof that a process lives: the presence of all its agents and its
// leaderships need it. One a process is enough. It shows others that agents live; what
// these may write is a matter of their Claim.
type Session struct{ *keyspace.Session }

// SharedSession shares one session among all roles of a process.
type SharedSession = keyspace.SharedSession[*Session]

// NewSession begins a session, which lives until it is closed, is lost, or the
// process ends. ctx bounds the beginning only.
func (s *State) NewSession(ctx context.Context) (*Session, error) {
	session, err := s.space.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{session}, nil
}

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession(s *State, announces bool) *SharedSession {
	return keyspace.NewSharedSession(s.NewSession, announces)
}

// Leadership is the right of one session in the environment to do something
// alone, as long as the session lives.
type Leadership struct{ *keyspace.Leadership }

// Campaign blocks until this session leads what, and returns its leadership. One session
// campaigns for the same thing once at a time. ErrSessionLost: the session ended
// meanwhile.
func (s *Session) Campaign(ctx context.Context, what string) (*Leadership, error) {
	return s.campaign(ctx, what, "")
}

// campaign is Campaign in the name of a unit, or of none.
func (s *Session) campaign(ctx context.Context, what, unit string) (*Leadership, error) {
	l, err := s.CampaignAs(ctx, keys.Leader(what), unit)
	if err != nil {
		return nil, err
	}
	return &Leadership{l}, nil
}

// Update is State.Update, conditional on this leadership: the write of a leader
// that was deposed without knowing it fails with ErrSessionLost.
func (l *Leadership) Update(ctx context.Context, f func(tx *Tx) error) error {
	return l.Leadership.Update(ctx, onKeys(f))
}

// CampaignFor blocks until this session leads a service, in the name of one of the units
// that run under it. One campaign a service and session is enough, however many units
// there are: SetLeaderUnit says which of them leads.
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
