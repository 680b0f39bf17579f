package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"bijou/agent/uniter"
	"bijou/state"
)

// RunUnit runs one unit agent without a machine agent, under its own session. It
// returns nil when ctx is done or the unit is gone, and an error as RunMachine
// does. Another agent that runs the same unit is waited for. A hook in flight is
// treated as by RunMachine.
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
	var claim *state.Claim
	err = retryTransient(ctx, o.Log, func() (err error) {
		claim, err = o.State.JoinClaim(ctx, machine, o.Claimant)
		return err
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

// Owed returns what the unit's agent would do now, as the state is; "" if it would wait for something
// to change. That update-status comes every few minutes does not count.
func Owed(v *state.View, unit string) (string, error) { return uniter.Owed(v, unit) }

// unlessDone returns nil once ctx is done, since that is how work is told to end, unless
// ctx is done because the machine's claim was lost.
func unlessDone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, state.ErrClaimLost) {
		return cause
	}
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}
	return err
}
