package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"bijou/agent/pace"
	"bijou/agent/pulse"
	"bijou/agent/uniter"
	"bijou/state"
)

// host is what the unit agents of one process share.
type host struct {
	state    *state.State
	dir      string // the machine's
	tools    string
	uuid     string // the environment's
	sockets  string // the folder that socket makes
	slots    *uniter.HookLimiter
	log      *slog.Logger
	fault    Fault
	claim    *state.Claim
	presence *presence
	leaders  *leaders
	trouble  *trouble
	pulse    *pulse.Pulse // may be nil
}

// newHost makes the presence under the machine's claim; slots, tools and fault are for the
// caller to say.
func newHost(st *state.State, env state.Environment, dir string, claim *state.Claim, log *slog.Logger) (*host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the machine's folder: %w", err)
	}
	p, t := newPresence(st, claim, log), newTrouble(log)
	p.told, t.report = t.of("session"), p.report
	return &host{
		state: st, dir: dir, uuid: env.UUID, sockets: socketDirName(env.UUID, dir), log: log, claim: claim,
		presence: p, leaders: newLeaders(p, st, log), trouble: t,
	}, nil
}

// socket makes the folder of a unit's socket, and returns where that is to be.
func (h *host) socket(unit string) (string, error) {
	dir, err := socketDir(h.uuid, h.dir)
	return socketPath(dir, unit), err
}

// attend announces the agents, and ends them once another process runs the machine or they
// are asked to retire, while work runs them.
func (h *host) attend(ctx context.Context, retire <-chan struct{}, work func(ctx context.Context) error) error {
	announcing, withdraw := context.WithCancel(context.WithoutCancel(ctx))
	working, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { h.presence.run(announcing, h.pulse.Loop("presence")) })
	wg.Go(func() { h.retire(working, retire, func() { stop(nil) }) })
	wg.Go(func() { h.guard(working, stop) })
	err := work(working)
	stop(nil)
	h.leaders.wait()
	withdraw()
	wg.Wait()
	_ = os.Remove(h.sockets) // only if nobody else's are in it
	return unlessDone(working, err)
}

// guard ends the agents, by stop with the reason, once the machine is claimed by another.
func (h *host) guard(ctx context.Context, stop context.CancelCauseFunc) {
	if err := h.claim.Watch(ctx); err != nil {
		h.log.Error("another agent runs the machine: the hooks in flight end, and this agent", "error", err)
		stop(err)
	}
}

// environment reads the environment's record once what the agent serves exists.
// A store that is away is waited for.
func environment(ctx context.Context, st *state.State, log *slog.Logger, exists func(v *state.View) error) (env state.Environment, err error) {
	err = outlast(ctx, log, func() error {
		return st.View(ctx, func(v *state.View) (err error) {
			if env, err = v.Environment(); err != nil {
				return err
			}
			return exists(v)
		})
	})
	return env, err
}

// outlast calls f until it succeeds, ctx is done, or waiting heals nothing.
func outlast(ctx context.Context, log *slog.Logger, f func() error) error {
	var again pace.Pacer
	told := newTrouble(log).of("start")
	for {
		err := f()
		hopeless := errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed) ||
			errors.Is(err, state.ErrClaimed) || errors.Is(err, state.ErrClaimLost)
		if err == nil || hopeless || ctx.Err() != nil {
			return err
		}
		told(err)
		_ = again.Pause(ctx)
	}
}
