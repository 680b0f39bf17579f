package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"

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
	env, err := environment(ctx, a.State, a.Log, func(v *state.View) error {
		_, err := v.Unit(a.Unit)
		return err
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	h, err := newHost(a.State, env, a.Dir, a.Log)
	if err != nil {
		return err
	}
	h.tools, h.fault, h.slots = a.Tools, a.Fault, uniter.NewSlots(1)
	announcing, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { h.presence.run(announcing) })
	working, stop := context.WithCancel(ctx)
	wg.Go(func() { h.retire(working, a.Retire, stop) })
	err = h.supervise(working, a.Unit)
	stop()
	h.leaders.wait()
	end()
	wg.Wait()
	_ = os.Remove(h.sockets) // only if nobody else's are in it
	return unlessDone(working, err)
}

// unlessDone is nil where the work has ended since its ctx is done.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}
	return err
}
