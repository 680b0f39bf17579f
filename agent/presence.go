package agent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"bijou/agent/pace"
	"bijou/state"
)

// presence keeps one session for all agents of the process. An agent is announced
// by its first commit. When the session is lost, a new one is begun and the
// agents are announced again; commits wait for that.
//
// No lock that cannot be given up is held while the store is asked: a store that
// does not answer must not keep an agent from ending.
type presence struct {
	state *state.State
	log   *slog.Logger

	turn    chan struct{} // buffered: whoever has put a word in may use session
	session *state.Session

	mu     sync.Mutex
	agents map[string]*state.Session // that have committed, and who announced them last; nil: nobody
}

func newPresence(st *state.State, log *slog.Logger) *presence {
	return &presence{state: st, log: log, turn: make(chan struct{}, 1), agents: map[string]*state.Session{}}
}

// dismiss says that the agent has ended: it is not announced again.
func (p *presence) dismiss(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.agents, agent)
}

// run keeps the agents announced until ctx is done, and then ends the session.
func (p *presence) run(ctx context.Context) {
	var again pace.Pacer
	for lost := false; ctx.Err() == nil; {
		s, err := p.announceAll(ctx)
		if err != nil {
			_ = again.Pause(ctx)
			continue
		}
		again.Reset()
		if lost {
			p.log.Warn("the session was lost; the agents are announced again")
		}
		select {
		case <-s.Done():
			lost = true
		case <-ctx.Done():
		}
	}
	p.close(ctx)
}

// announceAll announces every agent again. One whose unit or machine is gone is left to
// find that out by itself.
func (p *presence) announceAll(ctx context.Context) (*state.Session, error) {
	s, err := p.current(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	agents := slices.Collect(maps.Keys(p.agents))
	p.mu.Unlock()
	for _, agent := range agents {
		if err := p.announce(ctx, s, agent); err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
	}
	return s, nil
}

// current is the session that lives, a new one if need be.
func (p *presence) current(ctx context.Context) (*state.Session, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.session != nil {
		select {
		case <-p.session.Done():
			p.session = nil
		default:
			return p.session, nil
		}
	}
	s, err := p.state.NewSession(ctx)
	if err == nil {
		p.session = s
	}
	return s, err
}

// announced is the session that the agent is announced by.
func (p *presence) announced(ctx context.Context, agent string) (*state.Session, error) {
	s, err := p.current(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	by := p.agents[agent]
	p.agents[agent] = by // known from now on
	p.mu.Unlock()
	if by == s {
		return s, nil
	}
	return s, p.announce(ctx, s, agent)
}

// announce announces the agent, and notes that, unless it was dismissed meanwhile.
func (p *presence) announce(ctx context.Context, s *state.Session, agent string) error {
	if err := s.Announce(ctx, agent); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.agents[agent]; known {
		p.agents[agent] = s
	}
	return nil
}

// as commits as long as the agent is announced by this process. A commit that
// finds it is not announces it again, and is then repeated.
func (p *presence) as(agent string) state.Updater {
	return func(ctx context.Context, f func(tx *state.Tx) error) error {
		var err error
		for range 3 {
			var s *state.Session
			if s, err = p.announced(ctx, agent); err != nil {
				return err
			}
			if err = s.Update(ctx, agent, f); !errors.Is(err, state.ErrSessionLost) {
				return err
			}
			p.forget(agent, s)
		}
		return err
	}
}

// forget notes that the agent is not announced by the session any more.
func (p *presence) forget(agent string, s *state.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agents[agent] == s {
		p.agents[agent] = nil
	}
}

// close ends the session, so that the agents are seen to be gone at once. Nobody
// commits any more.
func (p *presence) close(ctx context.Context) {
	if p.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.session.Close(ctx); err != nil {
		p.log.Debug("cannot end the session; it expires", "error", err)
	}
	p.session = nil
}
