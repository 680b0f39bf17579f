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

// RunUnit runs one unit agent without a machine agent, in its own session. If another agent runs the unit,
// RunUnit waits until that agent has ended. It returns nil when ctx is done or the unit is gone. It returns the
// same errors as [RunMachine], and ends a hook in flight in the same way.
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

	// The machine's agent can hold the claim. This process then works beside it.
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

// Owed describes the step that the unit's agent would take now. If there is no such step, Owed describes the
// unit's first open request to the provisioner. It returns an empty string if the agent would only wait for
// changes. A due update-status hook does not count as a step.
func Owed(v *state.View, unit string) (string, error) { return uniter.Owed(v, unit) }

// unlessDone returns err. If ctx is done, it returns nil instead, since this is the normal end of the work.
// There are two exceptions: it returns [state.ErrClaimLost] if ctx is done because the machine's claim was
// lost, and an err that wraps [state.ErrStoreGone] even if ctx is done.
func unlessDone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, state.ErrClaimLost) {
		return cause
	}
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}

	return err
}

// superviseUnit runs the unit's agent, and restarts it after a pause if it ends with an error or a panic. It
// returns nil when the unit is gone, the agent's error when ctx is done, or [state.ErrStoreGone].
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

		hasRunLong := time.Since(begin) > backoff.MaxDelay
		if hasRunLong {
			retry.Reset() // this is not one of several failures in a row
		}
		log.Error("the unit's agent has ended; starting it again", "error", err)
		pause := retry.Next()
		h.outages.agentReporter(agent)(ctx, err, time.Now().Add(pause))
		_ = backoff.Sleep(ctx, pause) // if ctx is done, the next run ends at once
	}
}

// makeSocketPath returns the path of the socket at which the unit's hook tools reach its agent. It creates
// the socket's directory.
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
		Withdraw:    func() { h.election.withdraw(unit) },
	})
}

// host holds everything that the unit agents of one process share.
type host struct {
	Options
	env      state.Environment // as it was when the process started
	limiter  *uniter.HookLimiter
	logs     *unitlog.Sender
	claim    *state.Claim
	presence *presence
	election *leaderElection
	outages  *outageLog
}

// newHost returns a host with the options, for a process that holds the claim. The caller must set the host's
// limiter.
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

// hookConcurrency returns how many hooks can run at a time on a machine. The default is one hook, since
// charms run apt, and dpkg has one lock. Machines of provider "local" are not real machines, so the default
// there is the number of CPUs.
func hookConcurrency(env state.Environment) int {
	switch {
	case env.HookConcurrency() > 0:
		return env.HookConcurrency()
	case env.Provider == state.ProviderLocal:
		return runtime.NumCPU()
	}

	return 1
}

// runWhileClaimed calls work and announces the agents while work is running. It cancels work's ctx when
// another process has taken the machine's claim, or when a requested drain is complete. It returns an error that
// wraps [state.ErrClaimLost] if the claim was lost before work's ctx was done, and otherwise work's error if that
// wraps [state.ErrStoreGone]. In all other cases it returns nil.
func (h *host) runWhileClaimed(ctx context.Context, work func(ctx context.Context) error) error {
	// After ctx is done, work still commits the outcome of its hooks, and needs the session for that.
	announcing, stopAnnouncing := context.WithCancel(context.WithoutCancel(ctx))
	working, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { h.presence.run(announcing, h.Watchdog.Loop("presence")) })
	wg.Go(func() { h.drainOnRequest(working, func() { stop(nil) }) })

	wg.Go(func() {
		if err := h.claim.Watch(working); err != nil {
			h.Log.Error("another agent runs the machine: this agent ends, with its running hooks", "error", err)
			stop(err)
		}
	})

	err := work(working)

	// Everything that needs the session must end before the session. A lost claim stays the cause of working's end.
	stop(nil)
	h.logs.Close()
	h.election.wait()
	stopAnnouncing()
	wg.Wait()

	removeMachineSockets(h.Dir)
	return unlessDone(working, err)
}

// drainOnRequest waits until h.Drain is closed. Then it lets no further hook begin, and calls stop when all
// running hooks have ended.
func (h *host) drainOnRequest(ctx context.Context, stop func()) {
	select {
	case <-h.Drain:
	case <-ctx.Done():
		return
	}

	h.Log.Info("no new hooks begin; the agent ends once the running hooks have ended")
	select {
	case <-h.limiter.Drain():
		stop()
	case <-ctx.Done():
	}
}

// awaitEnvironment reads the environment, and calls check in the same view. It returns the environment, or the
// error of the read or of check. It retries as [retryTransient] does.
func awaitEnvironment(
	ctx context.Context,
	st *state.State,
	log *slog.Logger,
	check func(v *state.View) error,
) (state.Environment, error) {
	return retryTransient(ctx, log, func() (state.Environment, error) {
		return state.Read(ctx, st, func(v *state.View) (state.Environment, error) {
			env, err := v.Environment()
			if err != nil {
				return env, err
			}
			return env, check(v)
		})
	})
}

// retryTransient calls f until f succeeds, f fails with an error that a retry cannot fix, or ctx is done. It
// returns f's last results, and logs the outage.
func retryTransient[T any](ctx context.Context, log *slog.Logger, f func() (T, error)) (T, error) {
	var retry backoff.Exponential
	report := newOutageLog(log).partReporter("start")

	for {
		result, err := f()
		if err == nil || isPermanent(err) || ctx.Err() != nil {
			return result, err
		}

		report(err)
		_ = retry.Wait(ctx) // if ctx is done, f is called once more, for its error
	}
}

// isPermanent reports whether each retry would return the same error.
func isPermanent(err error) bool {
	return errors.Is(err, state.ErrNotFound) ||
		errors.Is(err, state.ErrStoreGone) ||
		errors.Is(err, state.ErrClosed) ||
		errors.Is(err, state.ErrClaimed) ||
		errors.Is(err, state.ErrClaimLost)
}
