package juju

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
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
	if e, err = reloadEnvironment(o, e); err != nil {
		return fmt.Errorf("cannot destroy environment %q: %w", e.Name, err)
	}
	if err := o.checkOriginal(e); err != nil {
		return fmt.Errorf("cannot destroy environment %q: %w", e.Name, err)
	}
	if err := c.stopUnits(o, e); err != nil {
		return console.Hint(fmt.Errorf("cannot destroy environment %q: %w", e.Name, err),
			"--force takes it down without stop hooks")
	}
	if err := c.takeDown(o, e, lock); err != nil {
		return fmt.Errorf("cannot destroy environment %q: %w", e.Name, err)
	}
	o.note("environment %q is gone", e.Name)
	return nil
}

// reloadEnvironment reads the record again under the lock: the state may have moved since
// the environment was chosen, and another one of that name is not what was confirmed.
func reloadEnvironment(o *operator, chosen home.Environment) (home.Environment, error) {
	now, err := o.home.Environment(chosen.Name)
	if err == nil && now.UUID != chosen.UUID {
		err = fmt.Errorf("it is another one by now, with the uuid %s", now.UUID)
	}
	if err != nil {
		return chosen, err
	}
	return now, nil
}

// stopUnits has nothing to do if an earlier, interrupted destroy-environment has passed
// it.
func (c destroyEnvironmentCmd) stopUnits(o *operator, e home.Environment) error {
	if c.Force || e.Phase == home.Removing {
		return nil
	}
	return (&drain{o: o, env: e, timeout: c.Timeout}).run()
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
