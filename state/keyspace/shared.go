package keyspace

import (
	"context"
	"fmt"
	"sync"
)

// session is a *Session, or what embeds one.
type session interface {
	comparable
	Done() <-chan struct{}
	Close(ctx context.Context) error
}

// SharedSession shares one session among all roles of a process. Whoever asks first begins it,
// and the next one after it was lost.
//
// The order of a beginning, above all after an outage, is: the lease, the presence of
// the agents, campaigns, then work. Whoever announces agents takes Session, and calls
// MarkAnnounced once they are; whoever campaigns takes AnnouncedSession. Its methods may be
// called from several goroutines.
type SharedSession[S session] struct {
	begin     func(ctx context.Context) (S, error)
	announces bool
	beginSlot chan struct{} // buffered: a lock for beginning, which a context can give up

	mu        sync.Mutex
	session   S
	announced chan struct{} // closed once the agents are announced
}

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession[S session](begin func(ctx context.Context) (S, error), announces bool) *SharedSession[S] {
	return &SharedSession[S]{begin: begin, announces: announces, beginSlot: make(chan struct{}, 1)}
}

// Session returns the session that lives, a new one if need be.
//
// No lock that cannot be given up is held while the store is asked: a store that does
// not answer must not keep a role from ending.
func (p *SharedSession[S]) Session(ctx context.Context) (s S, err error) {
	select {
	case p.beginSlot <- struct{}{}:
		defer func() { <-p.beginSlot }()
	case <-ctx.Done():
		return s, ctx.Err()
	}
	if s, _, ok := p.liveSession(); ok {
		return s, nil
	}
	if s, err = p.begin(ctx); err != nil {
		return s, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session, p.announced = s, make(chan struct{})
	if !p.announces {
		close(p.announced)
	}
	return s, nil
}

// liveSession returns ok false if there is no session, or it was lost; the channel is
// closed once its agents are announced.
func (p *SharedSession[S]) liveSession() (s S, announced <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == s || isClosed(p.session.Done()) {
		return s, nil, false
	}
	return p.session, p.announced, true
}

// MarkAnnounced records that all agents are announced by that session. It is idempotent, and
// does nothing for a session that is over.
func (p *SharedSession[S]) MarkAnnounced(s S) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == s && !isClosed(p.announced) {
		close(p.announced)
	}
}

// IsAnnounced reports whether all agents are announced by that session, and it lives.
func (p *SharedSession[S]) IsAnnounced(s S) bool {
	live, announced, ok := p.liveSession()
	return ok && live == s && isClosed(announced)
}

// AnnouncedSession returns the session that lives, once the agents are announced by it.
func (p *SharedSession[S]) AnnouncedSession(ctx context.Context) (S, error) {
	var none S
	for {
		if _, err := p.Session(ctx); err != nil {
			return none, err
		}
		s, announced, ok := p.liveSession()
		if !ok {
			continue // lost meanwhile
		}
		select {
		case <-announced:
			return s, nil
		case <-s.Done():
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// Close ends the session, so that its agents are gone and its leaderships free at once;
// if the store is away it expires. The roles have ended.
func (p *SharedSession[S]) Close(ctx context.Context) error {
	var none S
	p.mu.Lock()
	s := p.session
	p.session = none
	p.mu.Unlock()
	if s == none {
		return nil
	}
	if err := s.Close(ctx); err != nil {
		return fmt.Errorf("cannot end the process's session: %w", err)
	}
	return nil
}
