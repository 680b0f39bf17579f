package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
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
	failed   int      // of the units: in error, or with a relation in error: nothing but an operator, or a retry, moves them
	waits    []string // what each unit waits for
	runs     bool     // one of them runs something
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
	return l.services+l.units == 0 || l.units > 0 && l.units == l.failed
}

// run destroys all services and waits until they are gone, or all that is left
// of them is in error.
func (d *drain) run() error {
	ctx := d.o.ctx
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

// await waits until there is nothing left to wait for, and tells how far it is. It gives up
// once nothing has run or changed for the time-out.
func (d *drain) await(ctx context.Context, s *state.State, left leftover) (leftover, error) {
	total, took, changed, told := left.units, time.Duration(0), time.Now(), false
	defer func() { state.Tell(ctx, stopped(total, total)) }() // or else the bar would stay
	for !left.over() {
		state.Tell(ctx, stopped(max(0, total-left.units), total))
		rest(ctx, max(drainLook, 4*took))
		began := time.Now()
		now, err := remaining(ctx, s)
		switch {
		case d.o.ctx.Err() != nil:
			return left, fmt.Errorf("interrupted while there still are %s: %s", left, left.listed())
		case err != nil:
			return left, err
		case !slices.Equal(now.waits, left.waits):
			changed, told = began, false
		case !told && began.Sub(changed) > silence:
			d.o.note("waiting for %s: %s", now, now.listed())
			told = true
		case d.timeout > 0 && !now.runs && began.Sub(changed) > d.timeout:
			return left, console.Hint(fmt.Errorf("nothing has gone on for %s, and there still are %s: %s", d.timeout, left, left.listed()),
				"--timeout waits longer for the next change")
		}
		left, took = now, time.Since(began)
	}
	return left, nil
}

// silence is how long nothing may change before it is said what is waited for.
const silence = 5 * time.Second

// drainLook is the time between two looks at all units, at least: they are work for the store.
const drainLook = 100 * time.Millisecond

func stopped(done, total int) state.Progress {
	return state.Progress{What: "units stopped", Done: done, Total: total}
}

// listed names the first of what units wait for.
func (l leftover) listed() string {
	const enough = 10
	if more := len(l.waits) - enough; more > 0 {
		return strings.Join(l.waits[:enough], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(l.waits, "; ")
}

// giveUp tells of units that nobody waits for, unless there was an error.
func (d *drain) giveUp(left leftover, err error) error {
	if err == nil && left.failed > 0 {
		d.o.note("%s in error will not run any more hooks: %s", count(left.failed, "unit"), left.listed())
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
	var now state.Status
	err = s.View(ctx, func(v *state.View) (err error) {
		now, err = v.Status(time.Now())
		return err
	})
	l.services = len(now.Services)
	units := unitsOfAll(now)
	l.units = len(units)
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		why, failed := waitsFor(units[name])
		l.waits = append(l.waits, name+" "+why)
		if failed {
			l.failed++
		}
		l.runs = l.runs || units[name].Running != nil
	}
	return l, err
}

// waitsFor says what a unit that is to go waits for, and if that is an operator.
func waitsFor(u state.UnitView) (why string, failed bool) {
	for _, group := range u.Relations {
		for id, r := range group.Relations {
			if r.State == state.RelationError {
				return fmt.Sprintf("(%s: %s)", id, r.Message), true
			}
		}
	}
	switch i := u.Info; {
	case u.Trouble != nil:
		return "(" + firstLine(u.Trouble.Message) + ")", false
	case i != nil && i.Hook != "":
		return "(" + i.Hook + ": " + firstLine(i.Message) + ")", true
	case i != nil && i.Message != "":
		return "(" + firstLine(i.Message) + ")", false
	case u.Running != nil:
		return "(" + u.Running.Name + " runs)", false
	}
	return "(" + withLife(u.State, u.Life) + ")", false
}
