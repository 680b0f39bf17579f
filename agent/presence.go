package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"bijou/agent/pace"
	"bijou/agent/pulse"
	"bijou/state"
	"bijou/state/charm"
)

// presence announces all agents of the process by its one session, under its machine's
// claim. An agent is announced by its first commit. When the session is lost, the agents
// are announced again by the next; commits wait for that.
type presence struct {
	state   *state.State
	process *state.Process
	claim   *state.Claim
	own     bool // nobody else has part in process
	log     *slog.Logger
	ready   func()          // of the first agent that is announced; may be nil
	told    func(err error) // of every failure to announce all, and with nil of every success

	mu     sync.Mutex
	agents map[string]*state.Session // that have committed, and who announced them last; nil: nobody
}

// reportTimeout is how long an agent that cannot go on tries to say so.
const reportTimeout = 5 * time.Second

func newPresence(st *state.State, claim *state.Claim, log *slog.Logger) *presence {
	return &presence{state: st, process: state.NewProcess(st, true), claim: claim, own: true, log: log, told: func(error) {}, agents: map[string]*state.Session{}}
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
func (p *presence) run(ctx context.Context, loop *pulse.Loop) {
	defer loop.Rest()
	var again pace.Pacer
	for lost := false; ctx.Err() == nil; {
		loop.Turn()
		s, err := p.announceAll(ctx)
		if ctx.Err() == nil {
			p.told(err) // agents that only wait do not notice that the store is away
		}
		loop.Rest()
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
	if err := s.AnnounceAll(ctx, p.claim.Update, agents); err != nil {
		return nil, err
	}
	for _, agent := range agents {
		p.note(agent, s)
	}
	p.process.Stand(s)
	return s, nil
}

// announced has the agent announced by the session that lives.
func (p *presence) announced(ctx context.Context, agent string) error {
	s, err := p.process.Session(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	by := p.agents[agent]
	p.agents[agent] = by // known from now on
	p.mu.Unlock()
	if by == s {
		return nil
	}
	if err := s.Announce(ctx, p.claim.Update, agent); err != nil {
		return err
	}
	p.note(agent, s)
	return nil
}

// report writes what an agent cannot do where it is announced, nil: nothing any more; and
// into its log the line, unless that is empty.
func (p *presence) report(ctx context.Context, agent string, t *state.Trouble, line state.LogLine) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s, err := p.process.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Report(ctx, p.claim.Update, agent, t); err != nil || line.Message == "" {
		return err
	}
	source := agent
	if unit, err := charm.ParseUnitTag(agent); err == nil {
		source = unit
	}
	return p.state.AppendLog(ctx, source, []state.LogLine{line})
}

// note notes that the agent is announced, unless it was dismissed meanwhile.
func (p *presence) note(agent string, s *state.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.agents[agent]; known {
		p.agents[agent] = s
	}
	if p.ready != nil {
		p.ready()
		p.ready = nil
	}
}

// as commits for the agent once it is announced, as long as this process holds the
// machine's claim: state.ErrClaimLost.
func (p *presence) as(agent string) state.Updater {
	update := p.claim.As(agent)
	return func(ctx context.Context, f func(tx *state.Tx) error) error {
		if err := p.announced(ctx, agent); err != nil {
			return err
		}
		return update(ctx, f)
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
