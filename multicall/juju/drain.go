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
	said    string
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
		if err == nil && !left.over() {
			err = d.wake()
		}
		for err == nil && !left.over() {
			d.say("waiting for " + left.String())
			if err := pause(ctx); err != nil {
				return fmt.Errorf("after %s there still are %s: %w", d.timeout, left, err)
			}
			left, err = remaining(ctx, s)
		}
		if err == nil && left.failed > 0 {
			d.say(count(left.failed, "unit") + " in error will not run any more hooks")
		}
		return err
	})
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

// say tells the operator something, unless it was the last thing told.
func (d *drain) say(text string) {
	if text != d.said {
		d.o.note("%s", text)
	}
	d.said = text
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
