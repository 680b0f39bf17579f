package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"bijou/agent/uniter"
	"bijou/state"
)

// unitAgent serves one unit without a machine agent.
type unitAgent struct{ UnitOptions }

func newUnitAgent(o UnitOptions) *unitAgent {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &unitAgent{o}
}

func (a *unitAgent) run(ctx context.Context) error {
	var machine string
	env, err := awaitEnvironment(ctx, a.State, a.Log, func(v *state.View) error {
		u, err := v.Unit(a.Unit)
		machine = u.Machine
		return err
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	var claim *state.Claim
	err = retryTransient(ctx, a.Log, func() (err error) {
		claim, err = a.State.JoinClaim(ctx, machine, a.Claimant)
		return err
	})
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("cannot run unit %s: %w", a.Unit, err))
	}
	h, err := newHost(a.State, env, a.Dir, claim, a.Log)
	if err != nil {
		return err
	}
	h.tools, h.fault, h.limiter = a.Tools, a.Fault, uniter.NewHookLimiter(1)
	h.presence.ready, h.pulse = a.Ready, a.Pulse
	return h.runWhileClaimed(ctx, a.Retire, func(ctx context.Context) error { return h.superviseUnit(ctx, a.Unit) })
}

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
