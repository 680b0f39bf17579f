package juju

import (
	"bufio"
	"cmp"
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
	"bijou/state/backoff"
	"bijou/state/charm"
	"bijou/state/progress"
	"bijou/state/status"
	"bijou/state/storeurl"
)

type destroyEnvironmentCmd struct {
	Name    string        `arg:"" optional:"" help:"The environment, if not given by -e."`
	Yes     bool          `short:"y" aliases:"no-prompt" help:"Do not ask."`
	Force   bool          `help:"Do not let units run their stop hooks first."`
	Timeout time.Duration `default:"2m" help:"How long to wait for anything to go on; default 2m. A hook that runs takes its time: 0 waits without end."`

	DestroyStorage bool `hidden:"" aliases:"release-storage" help:"As it is: there is no storage that could stay."`
	NoWait         bool `hidden:"" help:"As it is with --force."`
}

// Run takes the environment down. It may be repeated until nothing is left.
func (c destroyEnvironmentCmd) Run(o *operator) error {
	e, err := o.home.Choose(cmp.Or(environmentName(c.Name), o.name))
	if err != nil {
		return err
	}
	if err := c.confirm(o, e); err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot destroy environment %q: %w", e.Name, err)
	}
	defer lock.Release()
	if !lock.Bootstrapped() { // another process was quicker
		return errors.Join(fmt.Errorf("%w %q any more", home.ErrNoEnvironment, e.Name), lock.Remove())
	}
	if err := c.destroy(o, e, lock); err != nil {
		return fmt.Errorf("cannot destroy environment %q: %w", e.Name, err)
	}
	o.note("environment %q is gone", e.Name)
	return nil
}

// destroy reads the record again under the lock: the state may have moved since the
// environment was chosen, and another one of that name is not what was confirmed.
func (c destroyEnvironmentCmd) destroy(o *operator, chosen home.Environment, lock *home.FolderLock) error {
	e, err := o.home.Environment(chosen.Name)
	if err == nil && e.UUID != chosen.UUID {
		err = fmt.Errorf("it is another one by now, with the uuid %s", e.UUID)
	}
	if err == nil {
		err = o.checkOriginal(e)
	}
	if err != nil {
		return err
	}
	if !c.Force && e.Phase != home.Removing { // or an earlier, interrupted destroy-environment has passed this
		if err := (&drain{o: o, env: e, timeout: c.Timeout}).run(); err != nil {
			return console.Hint(err, "--force takes it down without stop hooks")
		}
	}
	return c.takeDown(o, e, lock)
}

func (c destroyEnvironmentCmd) confirm(o *operator, e home.Environment) error {
	if c.Yes {
		return nil
	}
	fmt.Fprintf(o.streams.Err, "This destroys environment %q in %s with all its services and data.\nType its name to go on: ", e.Name, e.Dir)
	answer, err := bufio.NewReader(o.streams.In).ReadString('\n')
	if err != nil && answer == "" {
		return console.Hint(errors.New("nothing was destroyed: there was no answer"), "-y does not ask")
	}
	if strings.TrimSpace(answer) != e.Name {
		return fmt.Errorf("nothing was destroyed: the answer was %q", strings.TrimSpace(answer))
	}
	return nil
}

// takeDown ends machine 0 first: its provisioner would start the others again.
func (c destroyEnvironmentCmd) takeDown(o *operator, e home.Environment, lock *home.FolderLock) error {
	ctx, cancel := o.cleanupContext()
	defer cancel()
	e.Phase = home.Removing
	if err := e.Save(); err != nil {
		return err
	}
	dirs, err := e.MachineDirs()
	if err != nil {
		return err
	}
	o.note("ending the processes of environment %q", e.Name)
	for _, dir := range dirs {
		if err := o.parts.Agents.Halt(ctx, dir, haltTimeout); err != nil {
			return err
		}
	}
	if err := o.parts.Providers.FreeInstances(ctx, e); err != nil {
		return err
	}
	if err := o.parts.Hooks.EndStrays(ctx, "JUJU_ENV_UUID="+e.UUID); err != nil {
		return err
	}
	if err := errors.Join(o.parts.Agents.RemoveFiles(e), storeurl.Remove(ctx, e.State)); err != nil {
		return err
	}
	wasCurrent := o.home.Current() == e.Name
	if err := lock.Remove(); err != nil {
		return err
	}
	if wasCurrent {
		return o.home.SetCurrent("")
	}
	return nil
}

// cleanupContext survives an interruption of the command.
func (o *operator) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(o.ctx), 2*time.Minute)
}

// drain destroys an environment's services and lets their units run their last hooks.
type drain struct {
	o       *operator
	env     home.Environment
	timeout time.Duration
}

// remaining counts what a drain still waits for.
type remaining struct {
	services    int
	units       int
	failed      int      // of the units: in error, or with a relation in error: nothing but an operator, or a retry, moves them
	waitReasons []string // what each unit waits for
	anyRunning  bool     // one of them runs something
}

func (l remaining) String() string {
	return fmt.Sprintf("%s of %s", formatCount(l.units, "unit"), formatCount(l.services, "service"))
}

func (l remaining) isDone() bool {
	return l.services+l.units == 0 || l.units > 0 && l.units == l.failed
}

// run returns when all services are gone, or only units in error are left.
func (d *drain) run() error {
	ctx := d.o.ctx
	return d.o.openState(d.env, func(s *state.State) error {
		if err := destroyServices(ctx, s); err != nil {
			return err
		}
		left, err := readRemaining(ctx, s)
		if err != nil || left.isDone() {
			return d.noteFailed(left, err)
		}
		if err := d.startIfDown(); err != nil {
			return err
		}
		d.o.note("waiting for %s", left)
		left, err = d.waitUntilDone(ctx, s, left)
		return d.noteFailed(left, err)
	})
}

// waitUntilDone gives up once nothing has run or changed for the time-out.
func (d *drain) waitUntilDone(ctx context.Context, s *state.State, left remaining) (remaining, error) {
	total, readTime, changed, noted := left.units, time.Duration(0), time.Now(), false
	defer func() { progress.Report(ctx, stopProgress(total, total)) }() // or else the bar would stay
	for !left.isDone() {
		progress.Report(ctx, stopProgress(max(0, total-left.units), total))
		_ = backoff.Sleep(ctx, max(drainPollInterval, 4*readTime))
		began := time.Now()
		now, err := readRemaining(ctx, s)
		switch {
		case d.o.ctx.Err() != nil:
			return left, fmt.Errorf("interrupted while there still are %s: %s", left, listReasons(left.waitReasons))
		case err != nil:
			return left, err
		case !slices.Equal(now.waitReasons, left.waitReasons):
			changed, noted = began, false
		case !noted && began.Sub(changed) > silenceTimeout:
			d.o.note("waiting for %s: %s", now, listReasons(now.waitReasons))
			noted = true
		case d.timeout > 0 && !now.anyRunning && began.Sub(changed) > d.timeout:
			return left, console.Hint(fmt.Errorf("nothing has gone on for %s, and there still are %s: %s", d.timeout, left, listReasons(left.waitReasons)),
				"--timeout waits longer for the next change")
		}
		left, readTime = now, time.Since(began)
	}
	return left, nil
}

// silenceTimeout is how long nothing may change before the drain notes what it waits for.
const silenceTimeout = 5 * time.Second

// drainPollInterval is the least time between two reads of all units, which cost the store work.
const drainPollInterval = 100 * time.Millisecond

func stopProgress(done, total int) progress.Steps {
	return progress.Steps{What: "units stopped", Done: done, Total: total}
}

func (d *drain) noteFailed(left remaining, err error) error {
	if err == nil && left.failed > 0 {
		d.o.note("%s in error will not run any more hooks: %s", formatCount(left.failed, "unit"), listReasons(left.waitReasons))
	}
	return err
}

// startIfDown starts the background process: without it nobody runs the stop hooks.
func (d *drain) startIfDown() error {
	pid, err := d.o.parts.Agents.Running(d.env.MachineDir("0"))
	if err != nil || pid != 0 {
		return err
	}
	d.o.note("starting the background process of environment %q, for its units' stop hooks", d.env.Name)
	return d.o.startBackground(d.env)
}

func destroyServices(ctx context.Context, s *state.State) error {
	services, err := state.Read(ctx, s, (*state.View).Services)
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

func readRemaining(ctx context.Context, s *state.State) (l remaining, err error) {
	now, err := state.Read(ctx, s, func(v *state.View) (status.Status, error) { return status.Read(v, status.Options{Now: time.Now()}) })
	l.services = len(now.Services)
	units := allUnits(now)
	l.units = len(units)
	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		why, failed := units[name].WaitReason()
		l.waitReasons = append(l.waitReasons, name+" ("+why+")")
		if failed {
			l.failed++
		}
		l.anyRunning = l.anyRunning || units[name].Running != nil
	}
	return l, err
}
