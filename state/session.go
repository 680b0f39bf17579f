package state

import (
	"context"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SessionTTL is how long a process may be silent before its agents count as gone, and
// its leaderships as free.
const SessionTTL = keyspace.SessionTTL

// Session is the proof that a process lives: the presence of all its agents and its
// leaderships need it. One a process is enough. It shows others that agents live; what
// these may write is a matter of their Claim.
type Session struct {
	*keyspace.Session
	state *State
}

// SharedSession shares one session among all roles of a process.
type SharedSession = keyspace.SharedSession[*Session]

// NewSession begins a session, which lives until it is closed, is lost, or the
// process ends. ctx bounds the beginning only.
func (s *State) NewSession(ctx context.Context) (*Session, error) {
	session, err := s.space.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	return &Session{session, s}, nil
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
