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

// SessionTTL is how long a process may be silent before its leased keys vanish, and other processes can take
// over its leaderships.
const SessionTTL = 10 * time.Second

// Session shows other processes that this process is running. It is one lease, to which the leased keys and
// the leaderships of the process belong. One session per process is enough. A session does not give the right
// to write; a Claim does.
type Session struct {
	space *Space
	lease store.Lease
	id    string

	mu        sync.Mutex
	campaigns map[string]bool // the keys at which the session leads or campaigns

	closeOnce sync.Once
	closed    chan struct{}
	tasks     sync.WaitGroup
}

// Presence names a process. It is the value, or part of the value, of a key that the process holds by its
// session, such as a leader's key.
type Presence struct {
	Session string    `json:"session"` // the random id of the session
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	// Unit is the unit for which the process leads. It is empty if the process does not lead for a unit.
	Unit string `json:"unit,omitempty"`
	// Serves is true if the process is a leader that carries out the requests of other processes.
	Serves bool `json:"serves,omitempty"`
}

// NewSession starts a session, which lasts until it is closed or lost, or the process exits. ctx limits only
// the call of NewSession.
func (s *Space) NewSession(ctx context.Context) (*Session, error) {
	lease, err := s.store.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot start session: %w", err)
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

// Close ends the session, and waits for its tasks. The session's leased keys and leaderships vanish at once.
// If the store cannot be reached, Close returns an error, and they vanish after SessionTTL. Close is
// idempotent.
func (s *Session) Close(ctx context.Context) error {
	err := s.lease.Close(ctx)
	s.markClosed()
	s.tasks.Wait()
	if err != nil {
		return fmt.Errorf("cannot end session: %w", err)
	}

	return nil
}

// markClosed marks the session as closed, so that no further task starts.
func (s *Session) markClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeOnce.Do(func() { close(s.closed) })
}

// startTask runs f in a goroutine that Close waits for. If the session is closed, it returns false, and f
// does not run.
func (s *Session) startTask(f func()) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isClosed(s.closed) {
		return false
	}

	s.tasks.Go(f)
	return true
}

// isClosed reports whether the channel, on which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// NewPresence returns a presence of this process that begins now. unit can be empty.
func (s *Session) NewPresence(unit string) Presence {
	host, _ := os.Hostname()
	return Presence{Session: s.id, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Unit: unit}
}

// Wrote reports whether this session wrote the presence.
func (s *Session) Wrote(p Presence) bool { return p.Session == s.id }

// updateFenced does what Space.Update does, under the condition that this session wrote the key. It returns
// ErrSessionLost if a different session wrote the key, or if the key is absent.
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

// SharedSession shares one session among all roles of a process. The first role that needs a session starts
// it. After the session is lost, the next role that needs a session starts a new one.
//
// A process must start its tasks in this order, above all after an outage: the lease, the presence of its
// agents, campaigns, work. So a role that announces agents calls Session, and calls MarkAnnounced after it
// has announced them. A role that campaigns calls AnnouncedSession, which waits for the announcement. The
// methods may be called from several goroutines.
type SharedSession struct {
	space     *Space
	announces bool // whether a role of the process announces agents
	// beginSlot is the lock for starting a session. It is a channel with a buffer of one, because a context
	// can end the wait for a channel, but not for a mutex.
	beginSlot chan struct{}

	mu        sync.Mutex
	session   *Session      // nil if there is no session
	announced chan struct{} // closed once the agents are announced
}

// NewSharedSession returns a SharedSession without a session. If announces is true, a role of the process
// announces agents, and campaigns wait until it has done so.
func NewSharedSession(s *Space, announces bool) *SharedSession {
	return &SharedSession{space: s, announces: announces, beginSlot: make(chan struct{}, 1)}
}

// Session returns the live session, or a new one if there is none.
//
// Session holds no mutex while it waits for the store, so that a role can stop even if the store does not
// answer.
func (p *SharedSession) Session(ctx context.Context) (*Session, error) {
	select {
	case p.beginSlot <- struct{}{}:
		defer func() { <-p.beginSlot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	// Usually a session is live. Another call may also have begun one while this call waited for beginSlot.
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
		close(p.announced) // no role announces agents, so AnnouncedSession must not wait
	}
	return s, nil
}

// liveSession returns the session, and a channel that is closed once the session's agents are announced. It
// returns ok false if there is no session or the session was lost.
func (p *SharedSession) liveSession() (s *Session, announced <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || isClosed(p.session.Done()) {
		return nil, nil, false
	}
	return p.session, p.announced, true
}

// MarkAnnounced records that session s has announced all agents. It is idempotent, and does nothing if s is not
// the current session.
func (p *SharedSession) MarkAnnounced(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == s && !isClosed(p.announced) {
		close(p.announced)
	}
}

// IsAnnounced reports whether s is the current session and has announced all agents.
func (p *SharedSession) IsAnnounced(s *Session) bool {
	live, announced, ok := p.liveSession()
	return ok && live == s && isClosed(announced)
}

// AnnouncedSession waits until the current session has announced the agents, and returns that session. It
// starts a session if there is none.
func (p *SharedSession) AnnouncedSession(ctx context.Context) (*Session, error) {
	for {
		if _, err := p.Session(ctx); err != nil {
			return nil, err
		}

		s, announced, ok := p.liveSession()
		if !ok {
			// The session was lost since the call of Session.
			continue
		}

		select {
		case <-announced:
			return s, nil
		case <-s.Done():
			// The session was lost before the announcement, so wait for that of the next session.
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the session, so that its agents vanish and its leaderships become free immediately. If the store
// cannot be reached, Close returns an error, and the session expires instead. All roles must have ended before
// the call.
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
