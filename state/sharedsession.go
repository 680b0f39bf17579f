package state

import (
	"context"
	"fmt"
	"sync"
)

// SharedSession shares one session among all roles of a process. Whoever asks first begins it,
// and the next one after it was lost.
//
// The order of a beginning, above all after an outage, is: the lease, the presence of
// the agents, campaigns, then work. Whoever announces agents takes Session, and calls
// MarkAnnounced once they are; whoever campaigns takes AnnouncedSession. Its methods may be
// called from several goroutines.
type SharedSession struct {
	begin     func(ctx context.Context) (*Session, error)
	announces bool
	beginSlot chan struct{} // buffered: a lock for beginning, which a context can give up

	mu        sync.Mutex
	session   *Session
	announced chan struct{} // closed once the agents are announced
}

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession(s *State, announces bool) *SharedSession {
	return newSharedSession(s.NewSession, announces)
}

func newSharedSession(begin func(ctx context.Context) (*Session, error), announces bool) *SharedSession {
	return &SharedSession{begin: begin, announces: announces, beginSlot: make(chan struct{}, 1)}
}

// Session returns the session that lives, a new one if need be.
//
// No lock that cannot be given up is held while the store is asked: a store that does
// not answer must not keep a role from ending.
func (p *SharedSession) Session(ctx context.Context) (*Session, error) {
	select {
	case p.beginSlot <- struct{}{}:
		defer func() { <-p.beginSlot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s, _ := p.liveSession(); s != nil {
		return s, nil
	}
	s, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session, p.announced = s, make(chan struct{})
	if !p.announces {
		close(p.announced)
	}
	return s, nil
}

// liveSession returns nil if there is no session, or it was lost; the channel is closed
// once its agents are announced.
func (p *SharedSession) liveSession() (*Session, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		return nil, nil
	}
	select {
	case <-p.session.Done():
		return nil, nil
	default:
		return p.session, p.announced
	}
}

// MarkAnnounced records that all agents are announced by that session. It is idempotent, and
// does nothing for a session that is over.
func (p *SharedSession) MarkAnnounced(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != s {
		return
	}
	select {
	case <-p.announced:
	default:
		close(p.announced)
	}
}

// IsAnnounced reports whether all agents are announced by that session, and it lives.
func (p *SharedSession) IsAnnounced(s *Session) bool {
	live, announced := p.liveSession()
	if live == nil || live != s {
		return false
	}
	select {
	case <-announced:
		return true
	default:
		return false
	}
}

// AnnouncedSession returns the session that lives, once the agents are announced by it.
func (p *SharedSession) AnnouncedSession(ctx context.Context) (*Session, error) {
	for {
		if _, err := p.Session(ctx); err != nil {
			return nil, err
		}
		s, announced := p.liveSession()
		if s == nil {
			continue // lost meanwhile
		}
		select {
		case <-announced:
			return s, nil
		case <-s.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the session, so that its agents are gone and its leaderships free at once;
// if the store is away it expires. The roles have ended.
func (p *SharedSession) Close(ctx context.Context) error {
	p.mu.Lock()
	s := p.session
	p.session = nil
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	if err := s.Close(ctx); err != nil {
		return fmt.Errorf("cannot end the process's session: %w", err)
	}
	return nil
}
