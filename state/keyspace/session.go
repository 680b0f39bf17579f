package keyspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"bijou/state/store"
)

// SessionTTL is how long a process may be silent before its leased keys vanish, and its
// leaderships are free.
const SessionTTL = 10 * time.Second

// Session is the proof that a process lives: one lease, under which its leased keys and
// its leaderships are. One a process is enough. It shows others that the process lives;
// what that may write is a matter of its Claim.
type Session struct {
	space *Space
	lease store.Lease
	id    string

	mu        sync.Mutex
	campaigns map[string]bool // the keys at which it leads or campaigns

	once   sync.Once
	closed chan struct{}
	tasks  sync.WaitGroup
}

// Presence names a process: the value of a leader's key, or part of it.
type Presence struct {
	Session string    `json:"session"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	// Unit is in whose name the process leads; empty: in its own.
	Unit string `json:"unit,omitempty"`
}

// NewSession begins a session, which lives until it is closed, is lost, or the
// process ends. ctx bounds the beginning only.
func (s *Space) NewSession(ctx context.Context) (*Session, error) {
	lease, err := s.store.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot begin session: %w", err)
	}
	return &Session{space: s, lease: lease, id: rand.Text(), campaigns: map[string]bool{}, closed: make(chan struct{})}, nil
}

// Done is closed once the session is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.lease.Done() }

// Close ends the session: its leased keys are gone and its leaderships free at
// once, or if the store is away, after SessionTTL. It is idempotent.
func (s *Session) Close(ctx context.Context) error {
	err := s.lease.Close(ctx)
	s.markClosed()
	s.tasks.Wait()
	if err != nil {
		return fmt.Errorf("cannot end session: %w", err)
	}
	return nil
}

// markClosed lets no task begin any more.
func (s *Session) markClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.once.Do(func() { close(s.closed) })
}

// startTask runs f in a goroutine that Close waits for, unless the session is closed.
func (s *Session) startTask(f func()) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isClosed(s.closed) {
		return false
	}
	s.tasks.Go(f)
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// NewPresence returns the process's presence from now on, in the name of a unit or of none.
func (s *Session) NewPresence(unit string) Presence { return newPresence(s.id, unit) }

func newPresence(session, unit string) Presence {
	host, _ := os.Hostname()
	return Presence{Session: session, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Unit: unit}
}

// Wrote reports whether a presence is this session's.
func (s *Session) Wrote(p Presence) bool { return p.Session == s.id }

// updateFenced returns ErrSessionLost unless this session wrote the key.
func (s *Session) updateFenced(ctx context.Context, key string, f func(tx *Tx) error) error {
	return s.space.Update(ctx, func(tx *Tx) error {
		p, ok, err := Load[Presence](tx, key)
		if err != nil {
			return err
		}
		if !ok || !s.Wrote(p) {
			return Refuse(ErrSessionLost, "session lost: %s is not held by it any more", key)
		}
		return f(tx)
	})
}

// Leadership is the right of one session to do something alone, as long as the session
// lives. Its key holds the Presence of its process.
type Leadership struct {
	session  *Session
	key      string
	revision int64 // the revision at which the key was written; 0: not read yet
	resigned chan struct{}
	done     chan struct{}
}

// Campaign blocks until this session leads at the key, and returns its leadership. One
// session campaigns at a key once at a time. ErrSessionLost: the session ended meanwhile.
func (s *Session) Campaign(ctx context.Context, key string) (*Leadership, error) {
	return s.CampaignAs(ctx, key, "")
}

// CampaignAs is Campaign in the name of a unit, or of none.
func (s *Session) CampaignAs(ctx context.Context, key, unit string) (*Leadership, error) {
	if !s.registerCampaign(key) {
		return nil, fmt.Errorf("internal error: two campaigns for %q in one session", key)
	}
	ctx, cancel := s.withSession(ctx)
	defer cancel()
	err := s.acquireLeaderKey(ctx, key, unit)
	if err != nil {
		s.unregisterCampaign(key)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("cannot campaign for %q: %w", key, err)
	}
	l := &Leadership{session: s, key: key, resigned: make(chan struct{}), done: make(chan struct{})}
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

func (s *Session) registerCampaign(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.campaigns[key] {
		return false
	}
	s.campaigns[key] = true
	return true
}

func (s *Session) unregisterCampaign(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.campaigns, key)
}

func (s *Session) acquireLeaderKey(ctx context.Context, key, unit string) error {
	for {
		var leader Presence
		err := s.space.Update(ctx, func(tx *Tx) error {
			old, ok, err := Load[Presence](tx, key)
			stands := ok && (!s.Wrote(old) || old.Unit == unit)
			if leader = old; err != nil || stands {
				return err
			}
			leader = s.NewPresence(unit)
			return tx.PutLeased(key, leader, s)
		})
		if err != nil {
			return err
		}
		if s.Wrote(leader) {
			return nil
		}
		if err := s.space.AwaitAbsent(ctx, key); err != nil {
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

// HasEnded reports whether Done is closed.
func (l *Leadership) HasEnded() bool { return isClosed(l.done) }

// Update is Space.Update, conditional on this leadership: the write of a leader
// that was deposed without knowing it fails with ErrSessionLost.
func (l *Leadership) Update(ctx context.Context, f func(tx *Tx) error) error {
	return l.session.updateFenced(ctx, l.key, f)
}

// Resign ends the leadership, for the next to take. It is called once, and returns an
// error if the store was away; the leadership then ends with the session.
func (l *Leadership) Resign(ctx context.Context) error {
	err := l.Update(ctx, func(tx *Tx) error {
		tx.Remove(l.key)
		return nil
	})
	close(l.resigned)
	<-l.done
	l.session.unregisterCampaign(l.key)
	if err != nil && !errors.Is(err, ErrSessionLost) {
		return fmt.Errorf("cannot resign from %q: %w", l.key, err)
	}
	return nil
}

// SetLeaderUnit makes another unit of this session the leader. ErrSessionLost: the session
// does not lead any more.
func (l *Leadership) SetLeaderUnit(ctx context.Context, unit string) error {
	return l.Update(ctx, func(tx *Tx) error { return tx.PutLeased(l.key, l.session.NewPresence(unit), l.session) })
}
