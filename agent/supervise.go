package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"bijou/agent/uniter"
	"bijou/agent/unitfolder"
	"bijou/state"
	"bijou/state/backoff"
)

// superviseUnit returns when the unit is gone (nil), ctx is done (its error), or the store
// is gone. Whatever else ends the unit's agent, be it a panic, it is started again after a
// pause.
func (h *host) superviseUnit(ctx context.Context, unit string) error {
	agent := state.UnitAgent(unit)
	defer h.presence.removeAgent(agent)
	defer h.election.withdraw(unit)
	log := h.Log.With("unit", unit)
	var retry backoff.Exponential
	for {
		begin := time.Now()
		err := h.runUnitOnce(ctx, unit, log)
		if err == nil || ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) {
			return err
		}
		if time.Since(begin) > backoff.MaxDelay {
			retry.Reset()
		}
		log.Error("the unit's agent has ended; starting it again", "error", err)
		pause := retry.Next()
		h.outages.agentReporter(agent)(ctx, err, begin.Add(time.Since(begin)+pause))
		_ = backoff.Sleep(ctx, pause)
	}
}

func (h *host) runUnitOnce(ctx context.Context, unit string, log *slog.Logger) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	agent := state.UnitAgent(unit)
	return uniter.Run(ctx, uniter.Options{
		State:       h.State,
		Unit:        unit,
		Update:      h.presence.updaterFor(agent),
		Folder:      unitfolder.Of(h.Dir, unit),
		Tools:       h.Tools,
		Socket:      func() (string, error) { return h.makeSocketPath(unit) },
		Limiter:     h.limiter,
		Log:         log.With("part", "uniter"),
		Fault:       h.Fault,
		NoteAttempt: h.outages.agentReporter(agent),
		Loop:        h.Watchdog.Loop(agent),
		SecretKeys:  h.SecretKeys,
		Nominate:    func(stays bool) { h.election.nominate(ctx, unit, stays) },
	})
}

// UnitFolder returns a path of a unit's folder below its machine's that holds whichever binary
// the unit's agent runs: it may be a link.
func UnitFolder(machineDir, unit string) string {
	return string(unitfolder.Of(machineDir, unit).Legacy())
}
