package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	failed   []string // units in error, or with a relation in error: nothing but an operator, or a retry, moves them
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
func (l leftover) over() bool {
	return l.services+l.units == 0 || l.units > 0 && l.units == len(l.failed)
}

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
	total, took := left.units, time.Duration(0)
	defer func() { state.Tell(ctx, stopped(total, total)) }() // or else the bar would stay
	for !left.over() {
		state.Tell(ctx, stopped(max(0, total-left.units), total))
		rest(ctx, max(drainLook, 4*took))
		began := time.Now()
		now, err := remaining(ctx, s)
		if err != nil {
			return leftover{}, d.tired(err, left)
		}
		left, took = now, time.Since(began)
	}
	return left, nil
}

// drainLook is the time between two looks at all units, at least: they are work for the store.
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
		err = fmt.Errorf("after %s there still are %s", d.timeout, left)
		if len(left.failed) > 0 {
			err = fmt.Errorf("%w; in error: %s", err, left.named())
		}
	}
	return err
}

// named names the first of the units in error.
func (l leftover) named() string {
	const enough = 10
	if more := len(l.failed) - enough; more > 0 {
		return strings.Join(l.failed[:enough], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(l.failed, ", ")
}

// giveUp tells of units that nobody waits for, unless there was an error.
func (d *drain) giveUp(left leftover, err error) error {
	if err == nil && len(left.failed) > 0 {
		d.o.note("%s in error will not run any more hooks: %s", count(len(left.failed), "unit"), left.named())
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
			told, err := failing(v, u.Name)
			if err != nil {
				return err
			}
			if told != "" {
				l.failed = append(l.failed, told)
			}
		}
		return nil
	})
	return l, err
}

// failing names the unit if it is in error, with its relation if that is; else "".
func failing(v *state.View, unit string) (string, error) {
	u, err := v.Uniter(unit)
	if err != nil {
		return "", err
	}
	if u.Workflow.Failure != nil {
		return unit, nil
	}
	for _, id := range slices.Sorted(maps.Keys(u.Relations)) {
		if u.Relations[id].Failure != nil {
			return fmt.Sprintf("%s (%s)", unit, state.Relation{ID: id}), nil
		}
	}
	return "", nil
}
