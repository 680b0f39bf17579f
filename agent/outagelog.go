package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"bijou/state"
	"bijou/state/logs"
	"bijou/state/osutil"
)

// outageLog tells what agents of this process cannot do and try again: in the process's log
// once, since a store that is away concerns every unit, and in each agent's status.
type outageLog struct {
	log *slog.Logger
	// report writes an outage into an agent's status, and the line, unless its message is
	// empty, into its log. It may be nil.
	report func(ctx context.Context, agent string, t *state.Trouble, line logs.Line) error

	mu      sync.Mutex
	outages map[string]outage // by agent
}

// outage is a failure of one agent that lasts.
type outage struct {
	state.Trouble
	cause      string // empty: the agent goes on
	shownCause string // the cause that the status shows; empty: none
}

func newOutageLog(log *slog.Logger) *outageLog {
	return &outageLog{log: log, outages: map[string]outage{}}
}

// partReporter returns a function to be called after every failure of something that is no
// agent's work, and with nil after every success.
func (l *outageLog) partReporter(part string) func(err error) {
	return func(err error) { l.note(part, err, time.Time{}) }
}

// agentReporter returns a function to be called after every failure of an agent's work,
// with the time of the next attempt, and with nil after every success.
func (l *outageLog) agentReporter(agent string) func(ctx context.Context, err error, next time.Time) {
	return func(ctx context.Context, err error, next time.Time) {
		l.updateStatus(ctx, agent, l.note(agent, err, next))
	}
}

// note records the result of an agent's last attempt (err nil: it succeeded) and returns its outage. It
// logs a cause once, however many agents it stops. next is the time of the next attempt.
func (l *outageLog) note(agent string, err error, next time.Time) outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, had := l.outages[agent]
	if err == nil {
		return l.clearOutage(agent, o)
	}

	why := rootCause(err)
	if !l.isLogged(why) {
		l.log.Warn("cannot continue; retrying until it succeeds", "agent", agent, "error", err)
	}

	if !had || o.cause != why {
		o = outage{Trouble: state.Trouble{Since: time.Now().UTC()}, cause: why, shownCause: o.shownCause}
	}
	o.Message, _, _ = strings.Cut(osutil.Explain(err), "\n")
	o.Attempts++
	o.NextRetry = next.UTC()
	l.outages[agent] = o
	return o
}

// clearOutage removes an agent's outage. The caller holds l.mu.
func (l *outageLog) clearOutage(agent string, o outage) outage {
	if o.cause == "" {
		return o
	}

	delete(l.outages, agent)
	o.cause = ""
	if o.shownCause != "" {
		l.outages[agent] = o
	}

	for _, other := range l.outages {
		if other.cause != "" {
			return o
		}
	}

	l.log.Info("going on again")
	return o
}

// minAttemptsShown keeps out of the status what passes by itself at once.
const minAttemptsShown = 2

// updateStatus stores the agent's trouble for the status. While the store is away, it writes nothing.
func (l *outageLog) updateStatus(ctx context.Context, agent string, o outage) {
	line := logs.Line{Time: time.Now().UTC(), Level: "INFO", Message: "goes on again"}
	fails := &o.Trouble

	switch {
	case l.report == nil || o.cause == "" && o.shownCause == "":
		return
	case o.cause == "":
		fails = nil
	case o.Attempts < minAttemptsShown || o.cause == state.ErrAway.Error():
		return
	case o.cause == o.shownCause:
		line.Message = ""
	default:
		line.Level = "WARNING"
		line.Message = "cannot continue, and retries: " + o.Message
	}

	if err := l.report(ctx, agent, fails, line); err != nil {
		l.log.Debug("cannot record an agent's trouble", "agent", agent, "error", err)
		return // the next turn tries again
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	o.shownCause = o.cause
	l.outages[agent] = o
	if o.cause == "" {
		delete(l.outages, agent)
	}
}

// isLogged reports whether an outage with this cause is in the log already. The caller holds l.mu.
func (l *outageLog) isLogged(why string) bool {
	for _, other := range l.outages {
		if other.cause == why {
			return true
		}
	}
	return false
}

// rootCause returns an error's text without the context that callers wrapped around it. So all agents that
// one outage stops have the same cause. A store that is away counts as one cause, though it refuses some
// calls and blocks others.
func rootCause(err error) string {
	if errors.Is(err, state.ErrAway) {
		return state.ErrAway.Error()
	}

	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
