package keyspace

import (
	"context"
	"errors"
	"fmt"
)

// Leadership is the exclusive right of one session to a task, until the session ends. The value of its key is the
// Presence of the session's process.
type Leadership struct {
	session  *Session
	key      string
	revision int64 // the revision at which the key was written; 0 before it was read
	resigned chan struct{}
	done     chan struct{}
}

// Candidate is the part of a leader's Presence that the caller of Campaign chooses.
type Candidate struct {
	Unit   string // see Presence.Unit
	Serves bool   // see Presence.Serves
	// Check returns an error if the candidate cannot lead. Everything that it reads becomes a condition of
	// the commit that makes the candidate the leader. Check is nil if the candidate can always lead.
	Check func(tx *Tx) error
}

// put writes the candidate as the leader at the key, under the session, and returns what it has written. It
// returns the error of Check if the candidate cannot lead.
func (as Candidate) put(tx *Tx, s *Session, key string) (Presence, error) {
	if as.Check != nil {
		if err := as.Check(tx); err != nil {
			return Presence{}, err
		}
	}

	leader := s.NewPresence(as.Unit)
	leader.Serves = as.Serves
	return leader, tx.PutLeased(key, leader, s)
}

// Campaign blocks until this session leads at the key as the given candidate, and returns its leadership. A
// session must not campaign for a key at which it already campaigns or leads. Campaign returns ErrSessionLost
// if the session ends before it leads, and the error of as.Check if the candidate cannot lead.
func (s *Session) Campaign(ctx context.Context, key string, as Candidate) (*Leadership, error) {
	if !s.registerCampaign(key) {
		return nil, fmt.Errorf("internal error: two campaigns for %q in one session", key)
	}

	ctx, cancel := s.withSession(ctx)
	defer cancel()

	err := s.acquireLeaderKey(ctx, key, as)
	if err != nil {
		s.unregisterCampaign(key)
		// The cause says whether the session has ended or the caller's context.
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("cannot campaign for %q: %w", key, err)
	}

	l := &Leadership{session: s, key: key, resigned: make(chan struct{}), done: make(chan struct{})}
	if !s.startTask(l.awaitEnd) {
		// The session is closed, so the leadership ends immediately.
		l.awaitEnd()
	}
	return l, nil
}

// withSession returns a context that ends with the session, with the cause ErrSessionLost.
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

// registerCampaign records that the session campaigns at a key. It returns false if the session already
// campaigns or leads there.
func (s *Session) registerCampaign(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.campaigns[key] {
		return false
	}

	s.campaigns[key] = true
	return true
}

// unregisterCampaign records that the session no longer campaigns or leads at the key.
func (s *Session) unregisterCampaign(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.campaigns, key)
}

// acquireLeaderKey waits until no other session holds the key, and takes the key for the candidate. It returns the
// error of as.Check if the candidate cannot lead.
func (s *Session) acquireLeaderKey(ctx context.Context, key string, as Candidate) error {
	for {
		var leader Presence
		err := s.space.Update(ctx, func(tx *Tx) error {
			old, ok, err := Load[Presence](tx, key)
			if err != nil {
				return err
			}

			// If this session already holds the key, it writes the key again only for a different candidate.
			isFree := !ok
			isSameCandidate := old.Unit == as.Unit && old.Serves == as.Serves
			mustReplace := s.Wrote(old) && !isSameCandidate
			if isFree || mustReplace {
				leader, err = as.put(tx, s, key)
				return err
			}

			leader = old
			return nil
		})
		if err != nil {
			return err
		}

		if s.Wrote(leader) {
			return nil
		}
		// Another session leads.
		if err := s.space.AwaitAbsent(ctx, key); err != nil {
			return err
		}
	}
}

// awaitEnd waits for the end of the leadership, and then closes done.
func (l *Leadership) awaitEnd() {
	select {
	case <-l.session.Done():
	case <-l.session.closed: // Done can be closed later, if the store cannot be reached
	case <-l.resigned:
	}
	close(l.done)
}

// Done returns a channel that is closed once the leadership has ended, with the session or by Resign.
func (l *Leadership) Done() <-chan struct{} { return l.done }

// HasEnded reports whether Done is closed.
func (l *Leadership) HasEnded() bool { return isClosed(l.done) }

// Update does what Space.Update does, under the condition that this leadership lasts. It returns
// ErrSessionLost if another candidate leads, even if this process has not noticed it yet.
func (l *Leadership) Update(ctx context.Context, f func(tx *Tx) error) error {
	return l.session.updateFenced(ctx, l.key, f)
}

// Resign gives up the leadership, so that the next candidate gets it. It must be called only once. It returns
// an error if the store cannot be reached. In that case the key stays until the session ends. It returns no error
// if the session has already lost the leadership.
func (l *Leadership) Resign(ctx context.Context) error {
	err := l.Update(ctx, func(tx *Tx) error {
		tx.Remove(l.key)
		return nil
	})

	// The campaign ends even if the key could not be removed.
	close(l.resigned)
	<-l.done
	l.session.unregisterCampaign(l.key)
	if err != nil && !errors.Is(err, ErrSessionLost) {
		return fmt.Errorf("cannot resign from %q: %w", l.key, err)
	}

	return nil
}

// Pass makes another candidate of this session the leader. It returns ErrSessionLost if the session has lost the
// leadership.
func (l *Leadership) Pass(ctx context.Context, to Candidate) error {
	return l.Update(ctx, func(tx *Tx) error {
		_, err := to.put(tx, l.session, l.key)
		return err
	})
}
