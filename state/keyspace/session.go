package keyspace

import (
	"context"
	"crypto/rand"
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
	// Serves reports whether the process, a leader, carries out what others have requested of it.
	Serves bool `json:"serves,omitempty"`
}

// NewSession begins a session, which lives until it is closed, it is lost, or the process ends. ctx bounds
// only the beginning.
func (s *Space) NewSession(ctx context.Context) (*Session, error) {
	lease, err := s.store.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot begin session: %w", err)
	}

	return &Session{
		space:     s,
		lease:     lease,
		id:        rand.Text(),
		campaigns: map[string]bool{},
		closed:    make(chan struct{}),
	}, nil
}

// Done returns a channel that is closed once the session is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.lease.Done() }

// Close ends the session. Its leased keys and leaderships vanish at once or, if the store is away, after
// SessionTTL. It is idempotent.
func (s *Session) Close(ctx context.Context) error {
	err := s.lease.Close(ctx)
	s.markClosed()
	s.tasks.Wait()
	if err != nil {
		return fmt.Errorf("cannot end session: %w", err)
	}

	return nil
}

// markClosed marks the session as closed, so that no further task begins.
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
func (s *Session) NewPresence(unit string) Presence {
	host, _ := os.Hostname()
	return Presence{Session: s.id, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Unit: unit}
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
			return Refuse(ErrSessionLost, "session lost: it no longer holds %s", key)
		}

		return f(tx)
	})
}

// SharedSession shares one session among all roles of a process. Whoever asks first begins it,
// and the next one after it was lost.
//
// The order of a beginning, above all after an outage, is: the lease, the presence of the agents,
// campaigns, then work. Whoever announces agents takes Session, and calls MarkAnnounced once they
// are; whoever campaigns takes AnnouncedSession. Its methods may be called from several goroutines.
type SharedSession struct {
	space     *Space
	announces bool
	beginSlot chan struct{} // buffered: a lock for beginning, which a context can give up

	mu        sync.Mutex
	session   *Session      // nil: none
	announced chan struct{} // closed once the agents are announced
}

// NewSharedSession begins no session yet. With announces, one of the roles announces agents,
// and campaigns wait for that.
func NewSharedSession(s *Space, announces bool) *SharedSession {
	return &SharedSession{space: s, announces: announces, beginSlot: make(chan struct{}, 1)}
}

// Session returns the live session, or a new one if there is none.
//
// While it waits for the store it holds no mutex, so that a store that does not answer cannot keep a role
// from ending.
func (p *SharedSession) Session(ctx context.Context) (*Session, error) {
	select {
	case p.beginSlot <- struct{}{}:
		defer func() { <-p.beginSlot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if s, _, ok := p.liveSession(); ok {
		return s, nil
	}
	s, err := p.space.NewSession(ctx)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
	p.announced = make(chan struct{})
	if !p.announces {
		close(p.announced)
	}
	return s, nil
}

// liveSession returns ok false if there is no session, or it was lost; the channel is
// closed once its agents are announced.
func (p *SharedSession) liveSession() (s *Session, announced <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || isClosed(p.session.Done()) {
		return nil, nil, false
	}
	return p.session, p.announced, true
}

// MarkAnnounced records that all agents are announced by that session. It is idempotent, and
// does nothing for a session that is over.
func (p *SharedSession) MarkAnnounced(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == s && !isClosed(p.announced) {
		close(p.announced)
	}
}

// IsAnnounced reports whether all agents are announced by that session, and it lives.
func (p *SharedSession) IsAnnounced(s *Session) bool {
	live, announced, ok := p.liveSession()
	return ok && live == s && isClosed(announced)
}

// AnnouncedSession returns the session that lives, once the agents are announced by it.
func (p *SharedSession) AnnouncedSession(ctx context.Context) (*Session, error) {
	for {
		if _, err := p.Session(ctx); err != nil {
			return nil, err
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
