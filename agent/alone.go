package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"bijou/agent/uniter"
	"bijou/state"
)

// alone is a unit agent without a machine agent.
type alone struct{ UnitOptions }

func newAlone(o UnitOptions) *alone {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &alone{o}
}

func (a *alone) run(ctx context.Context) error {
	var machine string
	env, err := environment(ctx, a.State, a.Log, func(v *state.View) error {
		u, err := v.Unit(a.Unit)
		machine = u.Machine
		return err
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	var claim *state.Claim
	err = outlast(ctx, a.Log, func() (err error) {
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
	h.tools, h.fault, h.slots = a.Tools, a.Fault, uniter.NewHookLimiter(1)
	h.presence.ready, h.pulse = a.Ready, a.Pulse
	return h.attend(ctx, a.Retire, func(ctx context.Context) error { return h.supervise(ctx, a.Unit) })
}

// unlessDone is nil where the work has ended since its ctx is done, unless that was
// because the machine's claim was lost.
func unlessDone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, state.ErrClaimLost) {
		return cause
	}
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}
	return err
}
