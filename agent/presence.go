package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"bijou/agent/pulse"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/charm"
	"bijou/state/logs"
)

// presence announces all agents of the process in one session, under the claim of their machine. It announces
// an agent before the agent's first commit. When the session is lost, it announces all agents again in the
// next session. Each agent's commits wait until it is announced.
type presence struct {
	state      *state.State
	process    *state.SharedSession
	claim      *state.Claim
	ownSession bool // no other role of this process uses the session
	log        *slog.Logger
	ready      func()          // called once, when the first agent is announced; can be nil
	onAnnounce func(err error) // called after each attempt to announce all agents

	mu sync.Mutex
	// agents contains each agent that has tried to commit, with the session that announced it last. The
	// session is nil if no session has announced the agent.
	agents map[string]*state.Session
}

// reportTimeout limits one report of an agent's trouble.
const reportTimeout = 5 * time.Second

// newPresence returns a presence with its own session and without agents. The caller can replace the session.
func newPresence(st *state.State, claim *state.Claim, log *slog.Logger) *presence {
	const announces = true
	return &presence{
		state:      st,
		process:    state.NewSharedSession(st, announces),
		claim:      claim,
		ownSession: true,
		log:        log,
		onAnnounce: func(error) {},
		agents:     map[string]*state.Session{},
	}
}

// removeAgent forgets an agent that has ended. announceAll no longer announces it.
func (p *presence) removeAgent(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.agents, agent)
}

// run keeps all agents of this process announced until ctx is done. It announces them again whenever the
// session is lost. At the end it closes the session, unless other roles of this process share it.
func (p *presence) run(ctx context.Context, loop *pulse.Loop) {
	defer loop.MarkUnbounded()
	var retry backoff.Exponential
	lost := false // a session has been lost

	for ctx.Err() == nil {
		loop.MarkBusy()
		s, err := p.announceAll(ctx)
		if ctx.Err() == nil {
			// Report an unreachable store here, since agents that only wait do not notice it.
			p.onAnnounce(err)
		}
		loop.MarkUnbounded()
		if err != nil {
			_ = retry.Wait(ctx)
			continue
		}

		retry.Reset()
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

// announceAll announces all agents of this process in its session. It skips an agent whose unit or machine is
// gone, since that agent will notice this and end.
func (p *presence) announceAll(ctx context.Context) (*state.Session, error) {
	s, err := p.process.Session(ctx)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	agents := slices.Collect(maps.Keys(p.agents))
	p.mu.Unlock()
	if err := state.AnnounceAll(ctx, s, state.Under(p.claim), agents); err != nil {
		return nil, err
	}

	// A skipped agent also counts as announced.
	for _, agent := range agents {
		p.noteAnnounced(agent, s)
	}
	p.process.MarkAnnounced(s) // campaigns for leaderships wait for this
	return s, nil
}

// announceAgent announces the agent in this process's session, unless this session has already announced the
// agent.
func (p *presence) announceAgent(ctx context.Context, agent string) error {
	s, err := p.process.Session(ctx)
	if err != nil {
		return err
	}

	p.mu.Lock()
	announcedBy := p.agents[agent]
	p.agents[agent] = announcedBy // adds an unknown agent with a nil session, so that announceAll knows it
	p.mu.Unlock()
	if announcedBy == s {
		return nil
	}
	if err := state.Announce(ctx, s, state.Under(p.claim), agent); err != nil {
		return err
	}

	p.noteAnnounced(agent, s)
	return nil
}

// reportTrouble stores the trouble t with an agent's announcement, or removes the stored trouble if t is nil.
// It also appends line to the agent's log, unless the line's message is empty.
func (p *presence) reportTrouble(ctx context.Context, agent string, t *state.Trouble, line logs.Line) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()

	s, err := p.process.Session(ctx)
	if err != nil {
		return err
	}
	if err := state.Report(ctx, s, state.Under(p.claim), agent, t); err != nil {
		return err
	}
	if line.Message == "" {
		return nil
	}

	// The log of a unit's agent is that of the unit.
	source := agent
	if unit, err := charm.ParseUnitTag(agent); err == nil {
		source = unit
	}
	return logs.Append(ctx, p.state, source, []logs.Line{line})
}

// noteAnnounced records the session that has announced the agent. After the first announcement it calls
// p.ready.
func (p *presence) noteAnnounced(agent string, s *state.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if _, known := p.agents[agent]; known { // unless removeAgent was called in the meantime
		p.agents[agent] = s
	}
	if p.ready != nil {
		p.ready()
		p.ready = nil
	}
}

// updaterFor returns an Updater that announces the agent before it commits. The Updater returns
// [state.ErrClaimLost] if this process no longer holds the machine's claim.
func (p *presence) updaterFor(agent string) state.Updater {
	update := state.UpdaterFor(p.claim, agent)
	return func(ctx context.Context, f func(tx *state.Tx) error) error {
		if err := p.announceAgent(ctx, agent); err != nil {
			return err
		}
		return update(ctx, f)
	}
}

// close ends the session at once, so that the agents do not seem present until it expires. It does nothing if
// other roles share the session. The caller must have ended all commits.
func (p *presence) close(ctx context.Context) {
	if !p.ownSession {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := p.process.Close(ctx); err != nil {
		p.log.Debug("cannot end the session; it will expire", "error", err)
	}
}
