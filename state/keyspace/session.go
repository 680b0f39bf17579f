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
