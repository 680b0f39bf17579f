package juju

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bijou/multicall/home"
	"bijou/state"
)

// drain lets the units of an environment end in good order.
type drain struct {
	o       *operator
	env     home.Environment
	timeout time.Duration
}

// leftover is what a drain still waits for.
type leftover struct {
	services int
	units    int
	failed   int // units in error: nothing but an operator, or a retry, moves them
}

func (l leftover) String() string {
	return fmt.Sprintf("%s of %s", count(l.units, "unit"), count(l.services, "service"))
}

// count is a number of things: "1 unit", "2 units".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// over tells if there is nothing to wait for.
func (l leftover) over() bool { return l.services+l.units == 0 || l.units > 0 && l.units == l.failed }

// run destroys all services and waits until they are gone, or all that is left
// of them is in error.
func (d *drain) run() error {
	ctx, cancel := context.WithTimeout(d.o.ctx, d.timeout)
	defer cancel()
	return d.o.openState(d.env, func(s *state.State) error {
		if err := destroyAll(ctx, s); err != nil {
			return err
		}
		left, err := remaining(ctx, s)
		if err != nil || left.over() {
			return d.giveUp(left, err)
		}
		if err := d.wake(); err != nil {
			return err
		}
		d.o.note("waiting for %s", left)
		left, err = d.await(ctx, s, left)
		return d.giveUp(left, err)
	})
}

// await waits until there is nothing left to wait for, and tells how far it is.
func (d *drain) await(ctx context.Context, s *state.State, left leftover) (leftover, error) {
	total := left.units
	defer func() { state.Tell(ctx, stopped(total, total)) }() // or else the bar would stay
	for !left.over() {
		state.Tell(ctx, stopped(max(0, total-left.units), total))
		rest(ctx, drainLook)
		now, err := remaining(ctx, s)
		if err != nil {
			return leftover{}, d.tired(err, left)
		}
		left = now
	}
	return left, nil
}

// drainLook is the time between two looks at all units, which are work for the store.
const drainLook = 100 * time.Millisecond

func stopped(done, total int) state.Progress {
	return state.Progress{What: "units stopped", Done: done, Total: total}
}

// tired words the end of a drain that was not over.
func (d *drain) tired(err error, left leftover) error {
	switch {
	case d.o.ctx.Err() != nil:
		return fmt.Errorf("interrupted while there still are %s", left)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("after %s there still are %s", d.timeout, left)
	}
	return err
}

// giveUp tells of units that nobody waits for, unless there was an error.
func (d *drain) giveUp(left leftover, err error) error {
	if err == nil && left.failed > 0 {
		d.o.note("%s in error will not run any more hooks", count(left.failed, "unit"))
	}
	return err
}

// wake starts the background process if it does not run: somebody has to run the
// stop hooks.
func (d *drain) wake() error {
	pid, err := d.o.parts.Running(d.env.MachineDir("0"))
	if err != nil || pid != 0 {
		return err
	}
	d.o.note("starting the background process of environment %q, for its units' stop hooks", d.env.Name)
	return d.o.startBackground(d.env)
}

// destroyAll makes all services dying.
func destroyAll(ctx context.Context, s *state.State) error {
	var services []state.Service
	err := s.View(ctx, func(v *state.View) (err error) {
		services, err = v.Services()
		return err
	})
	if err != nil {
		return err
	}
	for _, sv := range services {
		if err := s.DestroyService(ctx, sv.Name); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

// remaining counts what there still is.
func remaining(ctx context.Context, s *state.State) (l leftover, err error) {
	err = s.View(ctx, func(v *state.View) error {
		l = leftover{}
		services, err := v.Services()
		if err != nil {
			return err
		}
		units, err := v.Units("")
		if err != nil {
			return err
		}
		l.services, l.units = len(services), len(units)
		for _, u := range units {
			w, err := v.Workflow(u.Name)
			if err != nil {
				return err
			}
			if w.Failure != nil {
				l.failed++
			}
		}
		return nil
	})
	return l, err
}
