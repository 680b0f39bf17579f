package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"bijou/agent/uniter"
	"bijou/state"
	"bijou/state/backoff"
)

// host holds everything that the unit agents of one process share.
type host struct {
	Options
	uuid     string // the environment's
	sockets  string // the folder of the units' sockets
	limiter  *uniter.HookLimiter
	claim    *state.Claim
	presence *presence
	election *leaderElection
	outages  *outageLog
}

// newHost leaves the limiter to the caller.
func newHost(o Options, env state.Environment, claim *state.Claim) (*host, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the machine's folder: %w", err)
	}
	o.Dir = dir
	p, outages := newPresence(o.State, claim, o.Log), newOutageLog(o.Log)
	p.ready, p.onAnnounce, outages.report = o.Ready, outages.partReporter("session"), p.reportTrouble
	return &host{
		Options: o, uuid: env.UUID, sockets: socketDirPath(env.UUID, dir), claim: claim,
		presence: p, election: newLeaderElection(p, o.State, o.Log), outages: outages,
	}, nil
}

func (h *host) makeSocketPath(unit string) (string, error) {
	dir, err := makeSocketDir(h.uuid, h.Dir)
	return socketPath(dir, unit), err
}

// runWhileClaimed announces the agents while work runs them. It ends them once another
// process runs the machine, or once they are asked to drain.
func (h *host) runWhileClaimed(ctx context.Context, work func(ctx context.Context) error) error {
	announcing, stopAnnouncing := context.WithCancel(context.WithoutCancel(ctx))
	working, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { h.presence.run(announcing, h.Watchdog.Loop("presence")) })
	wg.Go(func() { h.drainOnRequest(working, func() { stop(nil) }) })
	wg.Go(func() { h.watchClaim(working, stop) })
	err := work(working)
	stop(nil)
	h.election.wait()
	stopAnnouncing()
	wg.Wait()
	_ = os.Remove(h.sockets) // only if nobody else's are in it
	return unlessDone(working, err)
}

func (h *host) drainOnRequest(ctx context.Context, stop func()) {
	select {
	case <-h.Drain:
	case <-ctx.Done():
		return
	}
	h.Log.Info("no hook begins any more; the agent ends with those in flight")
	select {
	case <-h.limiter.Drain():
		stop()
	case <-ctx.Done():
	}
}

func (h *host) watchClaim(ctx context.Context, stop context.CancelCauseFunc) {
	if err := h.claim.Watch(ctx); err != nil {
		h.Log.Error("another agent runs the machine: the hooks in flight end, and this agent", "error", err)
		stop(err)
	}
}

func awaitEnvironment(ctx context.Context, st *state.State, log *slog.Logger, exists func(v *state.View) error) (env state.Environment, err error) {
	err = retryTransient(ctx, log, func() error {
		return st.View(ctx, func(v *state.View) (err error) {
			if env, err = v.Environment(); err != nil {
				return err
			}
			return exists(v)
		})
	})
	return env, err
}

func retryTransient(ctx context.Context, log *slog.Logger, f func() error) error {
	var retry backoff.Exponential
	report := newOutageLog(log).partReporter("start")
	for {
		err := f()
		permanent := errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed) ||
			errors.Is(err, state.ErrClaimed) || errors.Is(err, state.ErrClaimLost)
		if err == nil || permanent || ctx.Err() != nil {
			return err
		}
		report(err)
		_ = retry.Wait(ctx)
	}
}
