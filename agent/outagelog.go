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

// outageLog reports failures after which the agents of this process retry. It writes each cause into the
// process's log once, since an unreachable store stops every unit. It also shows each failure in the agent's
// status.
type outageLog struct {
	log *slog.Logger
	// report stores an outage in an agent's status. It also adds the line to the agent's log, unless the
	// line's message is empty. report can be nil.
	report func(ctx context.Context, agent string, t *state.Trouble, line logs.Line) error

	mu      sync.Mutex
	outages map[string]outage // by agent
}

// outage is a continuing failure of one agent.
type outage struct {
	state.Trouble
	cause      string // empty if the failure is over, but the status still shows it
	shownCause string // the cause that the status shows, or empty
}

func newOutageLog(log *slog.Logger) *outageLog {
	return &outageLog{log: log, outages: map[string]outage{}}
}

// partReporter returns a function that reports the work of a part of this process that is not an agent. The
// caller must call it with the error of each attempt, or nil.
func (l *outageLog) partReporter(part string) func(err error) {
	return func(err error) { l.note(part, err, time.Time{}) }
}

// agentReporter returns a function that reports an agent's work. The caller must call it with the error of
// each attempt, or nil. After a failure, next is the time of the next attempt.
func (l *outageLog) agentReporter(agent string) func(ctx context.Context, err error, next time.Time) {
	return func(ctx context.Context, err error, next time.Time) {
		l.updateStatus(ctx, agent, l.note(agent, err, next))
	}
}

// note records the error of an agent's last attempt, or nil for success, and returns the agent's outage. It
// logs a cause only once, regardless of how many agents the cause stops. next is the time of the next
// attempt.
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

// clearOutage ends an agent's outage, and keeps it only while the status still shows it. It logs when the last
// outage of the process is over. The caller holds l.mu.
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

	l.log.Info("continuing")
	return o
}

// minAttemptsShown is the number of failed attempts after which the status shows an outage. It hides failures
// that the first retry resolves.
const minAttemptsShown = 2

// updateStatus stores the agent's outage in its status, or removes it when the outage is over. It records the
// beginning and the end once in the agent's log.
func (l *outageLog) updateStatus(ctx context.Context, agent string, o outage) {
	if l.report == nil || !o.needsReport() {
		return
	}

	trouble := &o.Trouble
	line := logs.Line{Time: time.Now().UTC()}
	switch {
	case o.cause == "":
		trouble = nil
		line.Level = "INFO"
		line.Message = "continues"
	case o.cause != o.shownCause:
		line.Level = "WARNING"
		line.Message = "cannot continue, and retries: " + o.Message
	}

	if err := l.report(ctx, agent, trouble, line); err != nil {
		l.log.Debug("cannot record an agent's problem", "agent", agent, "error", err)
		return // the agent's next attempt updates the status again
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	o.shownCause = o.cause
	l.outages[agent] = o
	if o.cause == "" {
		delete(l.outages, agent)
	}
}

// needsReport reports whether the agent's status must show the outage, or must no longer show it. While the
// store cannot be reached, no report is possible.
func (o outage) needsReport() bool {
	if o.cause == "" {
		return o.shownCause != ""
	}
	return o.Attempts >= minAttemptsShown && o.cause != state.ErrAway.Error()
}

// isLogged reports whether the current outage of an agent has this cause. If so, the cause has already been
// logged. The caller holds l.mu.
func (l *outageLog) isLogged(why string) bool {
	for _, other := range l.outages {
		if other.cause == why {
			return true
		}
	}
	return false
}

// rootCause returns an error's text without the context that callers wrapped around it, so that all agents
// stopped by one outage have the same cause. All errors from an unreachable store have the same cause,
// although some calls fail at once and others time out.
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
