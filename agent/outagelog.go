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

// outageLog reports the failures of this process's agents, which retry after each failure. It writes each cause
// into the process's log once, since an unreachable store stops every unit. It also shows each failure in the
// status of the agent.
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

// newOutageLog returns an outageLog that writes to log. The caller can set its report.
func newOutageLog(log *slog.Logger) *outageLog {
	return &outageLog{log: log, outages: map[string]outage{}}
}

// partReporter returns a function that reports the work of a part of this process that is not an agent. The
// caller must call the function after each attempt, with the attempt's error or nil.
func (l *outageLog) partReporter(part string) func(err error) {
	return func(err error) { l.recordAttempt(part, err, time.Time{}) }
}

// agentReporter returns a function that reports an agent's work. The caller must call the function after each
// attempt, with the attempt's error or nil. After a failure, next is the time of the next attempt.
func (l *outageLog) agentReporter(agent string) func(ctx context.Context, err error, next time.Time) {
	return func(ctx context.Context, err error, next time.Time) {
		l.updateStatus(ctx, agent, l.recordAttempt(agent, err, next))
	}
}

// recordAttempt records the error of an agent's last attempt, or nil for success, and returns the agent's
// outage. It logs a cause only if no current outage has it. next is the time of the next attempt.
func (l *outageLog) recordAttempt(agent string, err error, next time.Time) outage {
	l.mu.Lock()
	defer l.mu.Unlock()

	o, known := l.outages[agent]
	if err == nil {
		return l.clearOutage(agent, o)
	}

	cause := rootCause(err)
	if !l.isLogged(cause) {
		l.log.Warn("cannot continue; retrying until it succeeds", "agent", agent, "error", err)
	}

	// A different cause begins a new outage.
	if !known || o.cause != cause {
		o = outage{Trouble: state.Trouble{Since: time.Now().UTC()}, cause: cause, shownCause: o.shownCause}
	}

	o.Message, _, _ = strings.Cut(osutil.Explain(err), "\n") // the status shows one line
	o.Attempts++
	o.NextRetry = next.UTC()
	l.outages[agent] = o

	return o
}

// clearOutage records that an agent's outage is over, and returns the outage. It keeps the record only while
// the agent's status still shows the outage. When the last outage of the process is over, it logs that. The
// caller holds l.mu.
func (l *outageLog) clearOutage(agent string, o outage) outage {
	if o.cause == "" {
		return o // there was no outage, or it is already over
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

// updateStatus stores the agent's outage in the agent's status, or removes it when the outage is over. It also
// writes one line to the agent's log when the status begins to show a cause, and one when the outage is over. It
// does nothing if o.needsReport returns false.
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
		line.Message = "cannot continue; retrying: " + o.Message
	}
	// If the outage continues with the cause that the status shows, the line is empty and is not logged.

	if err := l.report(ctx, agent, trouble, line); err != nil {
		l.log.Debug("cannot record an agent's problem", "agent", agent, "error", err)
		return // the agent's next attempt updates the status again
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if o.cause == "" {
		delete(l.outages, agent)
		return
	}

	o.shownCause = o.cause
	l.outages[agent] = o
}

// needsReport reports whether the agent's status must be updated: to show a continuing outage, or to remove an
// outage that is over. While the store cannot be reached, the status cannot be updated.
func (o outage) needsReport() bool {
	if o.cause == "" {
		return o.shownCause != ""
	}
	return o.Attempts >= minAttemptsShown && o.cause != state.ErrAway.Error()
}

// isLogged reports whether the current outage of an agent has this cause. If so, the cause has already been
// logged. The caller holds l.mu.
func (l *outageLog) isLogged(cause string) bool {
	for _, other := range l.outages {
		if other.cause == cause {
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
