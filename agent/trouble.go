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
	// report writes it into an agent's status, and the line, unless its message is empty,
	// into its log; nil: nobody does.
	report func(ctx context.Context, agent string, t *state.Trouble, line state.LogLine) error

	mu  sync.Mutex
	now map[string]difficulty // by agent
}

// difficulty is one agent's trouble.
type difficulty struct {
	state.Trouble
	cause string // empty: it goes on
	shown string // the cause that its status has; empty: none
}

func newTrouble(log *slog.Logger) *trouble {
	return &trouble{log: log, now: map[string]difficulty{}}
}

// of is told of every failure of what is no agent's work, and with nil of every success.
func (t *trouble) of(part string) func(err error) {
	return func(err error) { t.note(part, err, time.Time{}) }
}

// shown is told of every failure of an agent's work, with when the next try is due, and
// with nil of every success: its status says so.
func (t *trouble) shown(agent string) func(ctx context.Context, err error, next time.Time) {
	return func(ctx context.Context, err error, next time.Time) {
		t.show(ctx, agent, t.note(agent, err, next))
	}
}

// note takes up how an agent fares.
func (t *trouble) note(agent string, err error, next time.Time) difficulty {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, had := t.now[agent]
	if err == nil {
		return t.over(agent, d)
	}
	why := cause(err)
	if !t.said(why) {
		t.log.Warn("cannot go on; trying again until it succeeds", "agent", agent, "error", err)
	}
	if !had || d.cause != why {
		d = difficulty{state.Trouble{Since: time.Now().UTC()}, why, d.shown}
	}
	d.Message, _, _ = strings.Cut(err.Error(), "\n")
	d.Attempts++
	d.NextRetry = next.UTC()
	t.now[agent] = d
	return d
}

// over notes that an agent goes on. t.mu is held.
func (t *trouble) over(agent string, d difficulty) difficulty {
	if d.cause == "" {
		return d
	}
	delete(t.now, agent)
	if d.cause = ""; d.shown != "" {
		t.now[agent] = d
	}
	for _, other := range t.now {
		if other.cause != "" {
			return d
		}
	}
	t.log.Info("going on again")
	return d
}

// showFrom is the failure of one cause from which on the status tells of it: much passes
// by itself at once.
const showFrom = 2

// show brings an agent's status up to date. That the store is away cannot be written.
func (t *trouble) show(ctx context.Context, agent string, d difficulty) {
	line := state.LogLine{Time: time.Now().UTC(), Level: "INFO", Message: "goes on again"}
	fails := &d.Trouble
	switch {
	case t.report == nil || d.cause == "" && d.shown == "":
		return
	case d.cause == "":
		fails = nil
	case d.Attempts < showFrom || d.cause == state.ErrAway.Error():
		return
	case d.cause == d.shown:
		line.Message = ""
	default:
		line.Level, line.Message = "WARNING", "cannot go on, and tries again: "+d.Message
	}
	if err := t.report(ctx, agent, fails, line); err != nil {
		t.log.Debug("cannot tell of an agent's trouble", "agent", agent, "error", err)
		return // the next turn tries again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d.shown = d.cause
	t.now[agent] = d
	if d.cause == "" {
		delete(t.now, agent)
	}
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
