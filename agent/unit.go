package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"bijou/agent/pace"
	"bijou/agent/uniter"
	"bijou/state"
)

// supervise runs one unit's agent until the unit is gone (nil), ctx is done (its
// error), or the store is gone. Whatever else ends the agent, be it a panic, it
// is started again after a pause.
func (h *host) supervise(ctx context.Context, unit string) error {
	agent := state.UnitAgent(unit)
	defer h.presence.dismiss(agent)
	defer h.leaders.retire(unit)
	log := h.log.With("unit", unit)
	var again pace.Pacer
	for {
		begin := time.Now()
		err := h.runOnce(ctx, unit, log)
		if err == nil || ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) {
			return err
		}
		if time.Since(begin) > pace.Most {
			again.Reset()
		}
		log.Error("the unit's agent has ended; starting it again", "error", err)
		pause := again.Next()
		h.trouble.shown(agent)(ctx, err, begin.Add(time.Since(begin)+pause))
		_ = pace.Sleep(ctx, pause)
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
	return uniter.Run(ctx, uniter.Options{
		State:       h.state,
		Unit:        unit,
		Update:      h.presence.as(agent),
		Folder:      uniter.FolderOf(h.dir, unit),
		Tools:       h.tools,
		Socket:      func() (string, error) { return h.socket(unit) },
		Limiter:     h.slots,
		Log:         log.With("part", "uniter"),
		Fault:       h.fault,
		NoteAttempt: h.trouble.shown(agent),
		Loop:        h.pulse.Loop(agent),
		Nominate:    func(stays bool) { h.leaders.stand(ctx, unit, stays) },
	})
}
