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

// presence announces all agents of the process by its one session. An agent is
// announced by its first commit. When the session is lost, the agents are
// announced again by the next; commits wait for that.
type presence struct {
	process *state.Process
	own     bool // nobody else has part in process
	log     *slog.Logger
	told    func(err error) // of every failure to announce all, and with nil of every success

	mu     sync.Mutex
	agents map[string]*state.Session // that have committed, and who announced them last; nil: nobody
}

func newPresence(st *state.State, log *slog.Logger) *presence {
	return &presence{process: state.NewProcess(st, true), own: true, log: log, told: func(error) {}, agents: map[string]*state.Session{}}
}

// share has the agents announced by a session in which other roles have part;
// nil: they have not.
func (p *presence) share(process *state.Process) {
	if process != nil {
		p.process, p.own = process, false
	}
}

// dismiss says that the agent has ended: it is not announced again.
func (p *presence) dismiss(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.agents, agent)
}

// run keeps the agents announced until ctx is done, and then ends the session, if
// it is nobody else's.
func (p *presence) run(ctx context.Context) {
	var again pace.Pacer
	for lost := false; ctx.Err() == nil; {
		s, err := p.announceAll(ctx)
		if ctx.Err() == nil {
			p.told(err) // agents that only wait do not notice that the store is away
		}
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
	s, err := p.process.Session(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	agents := slices.Collect(maps.Keys(p.agents))
	p.mu.Unlock()
	if err := s.AnnounceAll(ctx, agents); err != nil {
		return nil, err
	}
	for _, agent := range agents {
		p.note(agent, s)
	}
	p.process.Stand(s)
	return s, nil
}

// announced is the session that the agent is announced by.
func (p *presence) announced(ctx context.Context, agent string) (*state.Session, error) {
	s, err := p.process.Session(ctx)
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

// announce announces the agent.
func (p *presence) announce(ctx context.Context, s *state.Session, agent string) error {
	err := s.Announce(ctx, agent)
	if err == nil {
		p.note(agent, s)
	}
	return err
}

// note notes that the agent is announced, unless it was dismissed meanwhile.
func (p *presence) note(agent string, s *state.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.agents[agent]; known {
		p.agents[agent] = s
	}
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
	if !p.own {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.process.Close(ctx); err != nil {
		p.log.Debug("the session is left to expire", "error", err)
	}
}
