package agent

import (
	"context"
	"errors"
	"log/slog"
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
	var env state.Environment
	err := a.State.View(ctx, func(v *state.View) (err error) {
		if env, err = v.Environment(); err != nil {
			return err
		}
		_, err = v.Unit(a.Unit)
		return err
	})
	if err != nil {
		return err
	}
	sockets, err := socketDir(env.UUID)
	if err != nil {
		return err
	}
	p := newPresence(a.State, a.Log)
	h := &host{
		state: a.State, dir: a.Dir, tools: a.Tools, sockets: sockets, slots: make(uniter.Slots, 1),
		log: a.Log, fault: a.Fault, presence: p, trouble: newTrouble(a.Log),
	}
	h.presence.enlist(state.UnitAgent(a.Unit))
	announcing, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { p.run(announcing) })
	err = h.supervise(ctx, a.Unit)
	end()
	wg.Wait()
	return unlessDone(ctx, err)
}

// unlessDone is nil where the work has ended since its ctx is done.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, state.ErrStoreGone) {
		return nil
	}
	return err
}
