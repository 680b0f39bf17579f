package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bijou/state/charm"
	"bijou/state/store"
)

// SessionTTL is how long a process may be silent before others take its agents
// for gone, and its leaderships for free.
const SessionTTL = 10 * time.Second

// Session is the proof that a process lives: one lease, under which the presence
// of all its agents and its leaderships stand. One a process is enough. It tells others
// that agents live; what these may write is a matter of their Claim.
type Session struct {
	state *State
	lease store.Lease
	id    string
	// leaderPrefix is what stands before what it campaigns for, in keys.
	leaderPrefix string

	mu        sync.Mutex
	campaigns map[string]bool // what it leads or campaigns for

	once   sync.Once
	closed chan struct{}
	tasks  sync.WaitGroup
}

// presence is who announced an agent or leads something.
type presence struct {
	Session string    `json:"session"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	// Unit is which of the process's units leads, where a service's are led.
	Unit string `json:"unit,omitempty"`
	// Trouble is what keeps the agent that is announced from its work; nil: nothing.
	Trouble *Trouble `json:"trouble,omitempty"`
}

// Trouble is what an agent cannot do, and tries again.
type Trouble struct {
	Message   string    `json:"message" yaml:"message"`
	Since     time.Time `json:"since" yaml:"since"`
	Attempts  int       `json:"attempts" yaml:"attempts"`
	NextRetry time.Time `json:"next-retry" yaml:"next-retry"`
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

// startTask runs f in a goroutine that Close waits for; not if the session is closed,
// which it says.
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

// newPresence is what the session writes where it stands, for a unit or none.
func (s *Session) newPresence(unit string) presence {
	host, _ := os.Hostname()
	return presence{Session: s.id, Host: host, PID: os.Getpid(), Since: time.Now().UTC(), Unit: unit}
}

// Announce says that an agent ("machine-0", "unit-wordpress-0") runs in this process,
// in the place of any other that said so. The update is that of the agent's claim, so
// that only who holds it does. Announcing again is no error. ErrNotFound: the machine or
// unit is gone.
func (s *Session) Announce(ctx context.Context, update Updater, agent string) error {
	err := update(ctx, func(tx *Tx) error { return s.announce(tx, agent) })
	if err != nil {
		return fmt.Errorf("cannot announce agent %q: %w", agent, err)
	}
	return nil
}

func (s *Session) announce(tx *Tx, agent string) error {
	if err := tx.checkAgentExists(agent); err != nil {
		return err
	}
	old, ok, err := load[presence](tx.View, presenceKey(agent))
	if err != nil || ok && old.Session == s.id {
		return err
	}
	return tx.putLeased(presenceKey(agent), s.newPresence(""), s.lease.ID())
}

// Report announces an agent as Announce does, with what it cannot do; nil: nothing (any
// more). An agent whose machine or unit is gone has nobody to tell: no error.
func (s *Session) Report(ctx context.Context, update Updater, agent string, t *Trouble) error {
	if t != nil {
		t.Message = truncate(t.Message, maxMessageBytes)
	}
	err := update(ctx, func(tx *Tx) error {
		if err := tx.checkAgentExists(agent); err != nil {
			return err
		}
		p, ok, err := load[presence](tx.View, presenceKey(agent))
		if err != nil || t == nil && (!ok || p.Trouble == nil) {
			return err
		}
		if !ok || p.Session != s.id {
			p = s.newPresence("")
		}
		p.Trouble = t
		return tx.putLeased(presenceKey(agent), p, s.lease.ID())
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("cannot tell of agent %q: %w", agent, err)
	}
	return nil
}

// announceBatch is how many agents one transaction announces.
const announceBatch = 50

// AnnounceAll announces many agents, as after an outage, in batches. It passes
// over those whose machine or unit is gone.
func (s *Session) AnnounceAll(ctx context.Context, update Updater, agents []string) error {
	for batch := range slices.Chunk(agents, announceBatch) {
		err := update(ctx, func(tx *Tx) error {
			for _, agent := range batch {
				if err := s.announce(tx, agent); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot announce %d agents: %w", len(batch), err)
		}
	}
	return nil
}

// checkAgentExists refuses to announce for what does not exist.
func (v *View) checkAgentExists(agent string) error {
	if id, ok := strings.CutPrefix(agent, "machine-"); ok {
		_, err := v.Machine(id)
		return err
	}
	unit, err := charm.ParseUnitTag(agent)
	if err != nil {
		return err
	}
	_, err = v.Unit(unit)
	return err
}

// updateFenced is an update that fails unless the key says that this session wrote it.
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

// Trouble reads what keeps an agent that is announced from its work; nil: nothing.
func (v *View) Trouble(agent string) (*Trouble, error) {
	p, _, err := load[presence](v, presenceKey(agent))
	return p.Trouble, err
}

// Present says if an agent is announced by a session that lives.
func (v *View) Present(agent string) (bool, error) {
	_, ok, err := v.get(presenceKey(agent))
	return ok, err
}
