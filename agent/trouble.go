package agent

import (
	"log/slog"
	"sync"
)

// trouble says once when agents of this process cannot go on, and once when all
// of them can again: a store that is away concerns every unit.
type trouble struct {
	log *slog.Logger

	mu  sync.Mutex
	now map[string]bool // by agent
}

func newTrouble(log *slog.Logger) *trouble { return &trouble{log: log, now: map[string]bool{}} }

// of is told of every failure of an agent's work, and with nil of every success.
func (t *trouble) of(agent string) func(err error) {
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		before := len(t.now)
		if err != nil {
			t.now[agent] = true
		} else {
			delete(t.now, agent)
		}
		switch {
		case before == 0 && len(t.now) == 1:
			t.log.Warn("cannot go on; trying again until it succeeds", "agent", agent, "error", err)
		case before == 1 && len(t.now) == 0:
			t.log.Info("going on again")
		}
	}
}
