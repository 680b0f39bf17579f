package state

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"bijou/state/store"
)

// SessionTTL is how long a process may be silent before its agents count as gone, and
// its leaderships as free.
const SessionTTL = 10 * time.Second

// Session is the proof that a process lives: one lease, which the presence of all its
// agents and its leaderships need. One a process is enough. It shows others that agents
// live; what these may write is a matter of their Claim.
type Session struct {
	state        *State
	lease        store.Lease
	id           string
	leaderPrefix string // of the keys that it campaigns for

	mu        sync.Mutex
	campaigns map[string]bool // what it leads or campaigns for

	once   sync.Once
	closed chan struct{}
	tasks  sync.WaitGroup
}

// presence is the value of an announced agent's key, and of a leader's.
type presence struct {
	Session string    `json:"session"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	// Unit is which of the process's units leads, where a service's are led.
	Unit    string   `json:"unit,omitempty"`
	Trouble *Trouble `json:"trouble,omitempty"` // the announced agent's; nil: none
}

// NewSession begins a session, which lives until it is closed, is lost, or the
// process ends. ctx bounds the beginning only.
func (s *State) NewSession(ctx context.Context) (*Session, error) {
	lease, err := s.store.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot begin session: %w", err)
	}
	return &Session{state: s, lease: lease, id: rand.Text(), leaderPrefix: leadersPrefix, campaigns: map[string]bool{}, closed: make(chan struct{})}, nil
}

// Done is closed once the session is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.lease.Done() }

// Close ends the session: its agents are gone and its leaderships free at once,
// or if the store is away, after SessionTTL. It is idempotent.
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
	select {
	case <-s.closed:
		return false
	default:
	}
	s.tasks.Go(f)
	return true
}

func (s *Session) newPresence(unit string) presence {
	host, _ := os.Hostname()
	return presence{Session: s.id, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Unit: unit}
}

// updateFenced returns ErrSessionLost unless this session wrote the key.
func (s *Session) updateFenced(ctx context.Context, key string, f func(tx *Tx) error) error {
	return s.state.Update(ctx, func(tx *Tx) error {
		p, ok, err := load[presence](tx.View, key)
		if err != nil {
			return err
		}
		if !ok || p.Session != s.id {
			return refuse(ErrSessionLost, "session lost: %s is not held by it any more", key)
		}
		return f(tx)
	})
}
