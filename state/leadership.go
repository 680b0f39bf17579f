package state

import (
	"context"
	"errors"
	"fmt"
)

// Leadership is the right of one session in the environment to do something
// alone, as long as the session lives.
type Leadership struct {
	session  *Session
	name     string
	resigned chan struct{}
	done     chan struct{}
}

// Campaign blocks until this session leads what, and returns its leadership. One session
// campaigns for the same thing once at a time. ErrSessionLost: the session ended
// meanwhile.
func (s *Session) Campaign(ctx context.Context, what string) (*Leadership, error) {
	return s.campaign(ctx, what, "")
}

// campaign is Campaign in the name of a unit, or of none.
func (s *Session) campaign(ctx context.Context, what, unit string) (*Leadership, error) {
	if !s.registerCampaign(what) {
		return nil, fmt.Errorf("internal error: two campaigns for %q in one session", what)
	}
	ctx, cancel := s.withSession(ctx)
	defer cancel()
	err := s.acquireLeaderKey(ctx, what, unit)
	if err != nil {
		s.unregisterCampaign(what)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("cannot campaign for %q: %w", what, err)
	}
	l := &Leadership{session: s, name: what, resigned: make(chan struct{}), done: make(chan struct{})}
	if !s.startTask(l.awaitEnd) {
		l.awaitEnd() // it ends at once
	}
	return l, nil
}

func (s *Session) withSession(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	begun := s.startTask(func() {
		select {
		case <-s.Done():
			cancel(ErrSessionLost)
		case <-s.closed:
			cancel(ErrSessionLost)
		case <-ctx.Done():
		}
	})
	if !begun {
		cancel(ErrSessionLost)
	}
	return ctx, func() { cancel(nil) }
}

func (s *Session) registerCampaign(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.campaigns[what] {
		return false
	}
	s.campaigns[what] = true
	return true
}

func (s *Session) unregisterCampaign(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.campaigns, what)
}

func (s *Session) acquireLeaderKey(ctx context.Context, what, unit string) error {
	key := s.leaderPrefix + what
	for {
		var leader presence
		err := s.state.Update(ctx, func(tx *Tx) error {
			old, ok, err := load[presence](tx.View, key)
			stands := ok && (old.Session != s.id || old.Unit == unit)
			if leader = old; err != nil || stands {
				return err
			}
			leader = s.newPresence(unit)
			return tx.putLeased(key, leader, s.lease.ID())
		})
		if err != nil {
			return err
		}
		if leader.Session == s.id {
			return nil
		}
		if err := s.state.awaitAbsent(ctx, key); err != nil {
			return err
		}
	}
}

func (l *Leadership) awaitEnd() {
	select {
	case <-l.session.Done():
	case <-l.session.closed:
	case <-l.resigned:
	}
	close(l.done)
}

// Done is closed once the leadership has ended, with the session or by Resign.
func (l *Leadership) Done() <-chan struct{} { return l.done }

// Update is State.Update, conditional on this leadership: the write of a leader
// that was deposed without knowing it fails with ErrSessionLost.
func (l *Leadership) Update(ctx context.Context, f func(tx *Tx) error) error {
	return l.session.updateFenced(ctx, l.session.leaderPrefix+l.name, f)
}

// Resign ends the leadership, for the next to take. It is called once, and returns an
// error if the store was away; the leadership then ends with the session.
func (l *Leadership) Resign(ctx context.Context) error {
	err := l.Update(ctx, func(tx *Tx) error {
		tx.remove(l.session.leaderPrefix + l.name)
		return nil
	})
	close(l.resigned)
	<-l.done
	l.session.unregisterCampaign(l.name)
	if err != nil && !errors.Is(err, ErrSessionLost) {
		return fmt.Errorf("cannot resign from %q: %w", l.name, err)
	}
	return nil
}
