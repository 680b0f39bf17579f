package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"bijou/agent/uniter"
	"bijou/state"
)

// host is what the unit agents of one process share.
type host struct {
	state    *state.State
	dir      string // the machine's
	tools    string
	sockets  string
	slots    uniter.Slots
	log      *slog.Logger
	fault    Fault
	presence *presence
	trouble  *trouble
}

// supervise runs one unit's agent until the unit is gone (nil), ctx is done (its
// error), or the store is gone. Whatever else ends the agent, be it a panic, it
// is started again after a pause.
func (h *host) supervise(ctx context.Context, unit string) error {
	agent := state.UnitAgent(unit)
	h.presence.enlist(agent)
	defer h.presence.dismiss(agent)
	log := h.log.With("unit", unit)
	for {
		err := h.runOnce(ctx, unit, log)
		if err == nil || ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) {
			return err
		}
		log.Error("the unit's agent has ended; starting it again", "error", err)
		pause(ctx)
	}
}

// runOnce runs the agent once, and turns a panic into an error.
func (h *host) runOnce(ctx context.Context, unit string, log *slog.Logger) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	agent := state.UnitAgent(unit)
	if _, err := h.presence.announced(ctx, agent); err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	return uniter.Run(ctx, uniter.Options{
		State:   h.state,
		Unit:    unit,
		Update:  h.presence.as(agent),
		Folder:  uniter.FolderOf(h.dir, unit),
		Tools:   h.tools,
		Socket:  socketPath(h.sockets, unit),
		Slots:   h.slots,
		Log:     log,
		Fault:   h.fault,
		Trouble: h.trouble.of(agent),
	})
}
