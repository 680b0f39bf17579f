package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"bijou/state"
)

// trouble says what agents of this process cannot do and try again: in the process's log
// once, since a store that is away concerns every unit; and in the agent's status.
type trouble struct {
	log *slog.Logger
	// report writes it into an agent's status, and the line into its log; nil: nobody does.
	report func(ctx context.Context, agent string, t *state.Trouble, line state.LogLine) error

	mu       sync.Mutex
	now      map[string]difficulty // by agent
	reported map[string]string     // the cause that the agent's status has, by agent
}

// difficulty is one agent's trouble.
type difficulty struct {
	state.Trouble
	cause string
}

func newTrouble(log *slog.Logger) *trouble {
	return &trouble{log: log, now: map[string]difficulty{}, reported: map[string]string{}}
}

// of is told of every failure of what is no agent's work, and with nil of every success.
func (t *trouble) of(part string) func(err error) {
	return func(err error) {
		if err == nil {
			t.over(part)
			return
		}
		t.note(part, err, time.Time{})
	}
}

// shown is told of every failure of an agent's work, with when the next try is due, and
// with nil of every success: its status says so.
func (t *trouble) shown(agent string) func(ctx context.Context, err error, next time.Time) {
	return func(ctx context.Context, err error, next time.Time) {
		if err == nil {
			t.over(agent)
			t.clear(ctx, agent)
			return
		}
		t.show(ctx, agent, t.note(agent, err, next))
	}
}

// note takes up a failure.
func (t *trouble) note(agent string, err error, next time.Time) difficulty {
	t.mu.Lock()
	defer t.mu.Unlock()
	why := cause(err)
	if !t.said(why) {
		t.log.Warn("cannot go on; trying again until it succeeds", "agent", agent, "error", err)
	}
	d := t.now[agent]
	if d.cause != why {
		d = difficulty{state.Trouble{Since: time.Now().UTC()}, why}
	}
	d.Message, _, _ = strings.Cut(err.Error(), "\n")
	d.Attempts++
	d.NextRetry = next.UTC()
	t.now[agent] = d
	return d
}

// showFrom is the failure of one cause from which on the status tells of it: much passes
// by itself at once.
const showFrom = 2

// show writes an agent's trouble into its status. That the store is away cannot be written.
func (t *trouble) show(ctx context.Context, agent string, d difficulty) {
	if t.report == nil || d.Attempts < showFrom || d.cause == state.ErrAway.Error() {
		return
	}
	t.mu.Lock()
	known := t.reported[agent] == d.cause
	t.mu.Unlock()
	line := state.LogLine{Time: d.Since, Level: "WARNING", Message: "cannot go on, and tries again: " + d.Message}
	if known {
		line.Message = ""
	}
	if err := t.report(ctx, agent, &d.Trouble, line); err != nil {
		t.log.Debug("cannot tell of an agent's trouble", "agent", agent, "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reported[agent] = d.cause
}

// clear takes an agent's trouble out of its status.
func (t *trouble) clear(ctx context.Context, agent string) {
	t.mu.Lock()
	_, was := t.reported[agent]
	t.mu.Unlock()
	if !was {
		return
	}
	err := t.report(ctx, agent, nil, state.LogLine{Time: time.Now().UTC(), Level: "INFO", Message: "goes on again"})
	if err != nil {
		t.log.Debug("cannot tell that an agent goes on", "agent", agent, "error", err)
		return // the next success tries again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.reported, agent)
}

// said is true while any agent has that trouble.
func (t *trouble) said(why string) bool {
	for _, other := range t.now {
		if other.cause == why {
			return true
		}
	}
	return false
}

// over notes that an agent goes on.
func (t *trouble) over(agent string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, had := t.now[agent]; !had {
		return
	}
	delete(t.now, agent)
	if len(t.now) == 0 {
		t.log.Info("going on again")
	}
}

// cause is what an error comes down to, without the names that are wrapped
// around it: the same for all that one outage stops, though a store that is away
// refuses some and leaves others waiting.
func cause(err error) string {
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
