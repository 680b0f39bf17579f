package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"bijou/agent/uniter"
	"bijou/agent/unitlog"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/unitdir"
)

// RunUnit runs one unit agent without a machine agent, under its own session. It returns nil when
// ctx is done or the unit is gone, and an error as RunMachine does. Another agent that runs the
// same unit is waited for. A hook in flight is treated as by RunMachine.
func RunUnit(ctx context.Context, o UnitOptions) error {
	o.Log = cmp.Or(o.Log, slog.Default())
	var machine string
	env, err := awaitEnvironment(ctx, o.State, o.Log, func(v *state.View) error {
		u, err := v.Unit(o.Unit)
		machine = u.Machine
		return err
	})
	if err != nil {
		return unlessDone(ctx, err)
	}

	claim, err := retryTransient(ctx, o.Log, func() (*state.Claim, error) {
		return o.State.JoinClaim(ctx, machine, o.Claimant)
	})
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("cannot run unit %s: %w", o.Unit, err))
	}

	h, err := newHost(o.Options, env, claim)
	if err != nil {
		return err
	}

	h.limiter = uniter.NewHookLimiter(1)
	return h.runWhileClaimed(ctx, func(ctx context.Context) error { return h.superviseUnit(ctx, o.Unit) })
}

// Owed returns the step that the unit's agent would take now. It returns an empty string if the agent would
// only wait for changes. A due update-status does not count as a step.
func Owed(v *state.View, unit string) (string, error) { return uniter.Owed(v, unit) }

// unlessDone returns nil once ctx is done, since a done ctx is the normal end of the work. It returns the
// cause if ctx is done because the machine's claim was lost, and a vanished store in any case.
func unlessDone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, state.ErrClaimLost) {
		return cause
	}
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}

	return err
}

// superviseUnit runs the unit's agent, and starts it again after a pause when it ends by an error or a
// panic. It returns nil when the unit is gone, ctx's error when ctx is done, or an error when the store is
// gone.
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

// makeSocketPath returns where the unit's hook tools find its agent, and makes the folder.
func (h *host) makeSocketPath(unit string) (string, error) {
	dir, err := makeMachineSockets(h.env.UUID, h.Dir)
	if err != nil {
		return "", err
	}
	return socketPath(dir, unit), nil
}

// runUnitOnce runs a unit's agent until it ends. It returns a panic of the agent as an error.
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
		Folder:      unitdir.Of(h.Dir, unit),
		Tools:       h.Tools,
		Socket:      func() (string, error) { return h.makeSocketPath(unit) },
		Limiter:     h.limiter,
		Log:         log.With("part", "uniter"),
		Logs:        h.logs,
		Fault:       h.Fault,
		NoteAttempt: h.outages.agentReporter(agent),
		Loop:        h.Watchdog.Loop(agent),
		SecretKeys:  h.SecretKeys,
		Environment: h.env,
		Nominate:    func(stays bool) { h.election.nominate(ctx, unit, stays) },
	})
}

// host holds everything that the unit agents of one process share.
type host struct {
	Options
	env      state.Environment // as it was at the start
	limiter  *uniter.HookLimiter
	logs     *unitlog.Sender
	claim    *state.Claim
	presence *presence
	election *leaderElection
	outages  *outageLog
}

// newHost returns a host with the options, whose limiter the caller sets.
func newHost(o Options, env state.Environment, claim *state.Claim) (*host, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the machine's directory: %w", err)
	}

	o.Dir = dir
	p := newPresence(o.State, claim, o.Log)
	outages := newOutageLog(o.Log)
	p.ready = o.Ready
	p.onAnnounce = outages.partReporter("session")
	outages.report = p.reportTrouble
	return &host{
		Options:  o,
		env:      env,
		claim:    claim,
		logs:     unitlog.NewSender(o.State, o.Log),
		presence: p,
		election: newLeaderElection(p, o.State, o.Log),
		outages:  outages,
	}, nil
}

// hookConcurrency returns how many hooks may run at a time. Charms run apt, and dpkg has one lock:
// only on "local", where machines are not machines of their own, several is the default.
func hookConcurrency(env state.Environment) int {
	switch {
	case env.HookConcurrency() > 0:
		return env.HookConcurrency()
	case env.Provider == state.ProviderLocal:
		return runtime.NumCPU()
	}

	return 1
}

// runWhileClaimed announces the agents while work runs them. It ends them once another
// process runs the machine, or once they are asked to drain.
func (h *host) runWhileClaimed(ctx context.Context, work func(ctx context.Context) error) error {
	announcing, stopAnnouncing := context.WithCancel(context.WithoutCancel(ctx))
	working, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { h.presence.run(announcing, h.Watchdog.Loop("presence")) })
	wg.Go(func() { h.drainOnRequest(working, func() { stop(nil) }) })

	wg.Go(func() {
		if err := h.claim.Watch(working); err != nil {
			h.Log.Error("another agent runs the machine: this agent ends, with its hooks in flight", "error", err)
			stop(err)
		}
	})

	err := work(working)
	stop(nil)
	h.logs.Close()
	h.election.wait()
	stopAnnouncing()
	wg.Wait()
	removeMachineSockets(h.Dir)
	return unlessDone(working, err)
}

// drainOnRequest waits for a request to make way for another binary. Then it lets no hook begin, and calls
// stop when those that run have ended.
func (h *host) drainOnRequest(ctx context.Context, stop func()) {
	select {
	case <-h.Drain:
	case <-ctx.Done():
		return
	}

	h.Log.Info("no more hooks begin; the agent ends once those in flight have ended")
	select {
	case <-h.limiter.Drain():
		stop()
	case <-ctx.Done():
	}
}

// awaitEnvironment reads the environment, once exists returns no error. It retries while the store is away.
func awaitEnvironment(
	ctx context.Context,
	st *state.State,
	log *slog.Logger,
	exists func(v *state.View) error,
) (state.Environment, error) {
	return retryTransient(ctx, log, func() (state.Environment, error) {
		return state.Read(ctx, st, func(v *state.View) (state.Environment, error) {
			env, err := v.Environment()
			if err != nil {
				return env, err
			}
			return env, exists(v)
		})
	})
}

// retryTransient calls f until it succeeds, or fails in a way that a retry cannot mend. It reports the
// outage.
func retryTransient[T any](ctx context.Context, log *slog.Logger, f func() (T, error)) (T, error) {
	var retry backoff.Exponential
	report := newOutageLog(log).partReporter("start")
	for {
		result, err := f()
		permanent := errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrStoreGone) ||
			errors.Is(err, state.ErrClosed) ||
			errors.Is(err, state.ErrClaimed) || errors.Is(err, state.ErrClaimLost)
		if err == nil || permanent || ctx.Err() != nil {
			return result, err
		}

		report(err)
		_ = retry.Wait(ctx)
	}
}
