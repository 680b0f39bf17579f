package agent

import (
	"errors"
	"log/slog"
	"sync"

	"bijou/state"
)

// trouble says once when agents of this process cannot go on, and once when all
// of them can again: a store that is away concerns every unit, and is said once.
type trouble struct {
	log *slog.Logger

	mu  sync.Mutex
	now map[string]string // why, by agent
}

func newTrouble(log *slog.Logger) *trouble { return &trouble{log: log, now: map[string]string{}} }

// of is told of every failure of an agent's work, and with nil of every success.
func (t *trouble) of(agent string) func(err error) {
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil {
			t.over(agent)
			return
		}
		why := cause(err)
		if !t.said(why) {
			t.log.Warn("cannot go on; trying again until it succeeds", "agent", agent, "error", err)
		}
		t.now[agent] = why
	}
}

// said is true while any agent has that trouble.
func (t *trouble) said(why string) bool {
	for _, other := range t.now {
		if other == why {
			return true
		}
	}
	return false
}

// over notes that an agent goes on.
func (t *trouble) over(agent string) {
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
