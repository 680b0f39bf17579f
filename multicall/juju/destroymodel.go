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
	"bijou/state/charm"
	"bijou/state/storeurl"
)

type destroyModelCmd struct {
	Name    string        `arg:"" optional:"" help:"The model, if not given by -e."`
	Yes     bool          `short:"y" aliases:"no-prompt" help:"Do not ask."`
	Force   bool          `help:"Skip the units' stop hooks."`
	Timeout time.Duration `default:"2m" help:"Wait at most this long without progress; 0 waits forever; default 2m. The time that a running hook takes does not count."`

	DestroyStorage bool `hidden:"" aliases:"release-storage" help:"No effect: no storage can stay without its model."`
	NoWait         bool `hidden:"" help:"No effect: --force never waits."`
}

// Run destroys the environment, and prints which host directories for storage keep their content. After an
// error, the operator can repeat the command.
func (c destroyModelCmd) Run(o *operator) error {
	e, err := o.home.Choose(cmp.Or(home.EnvironmentName(c.Name), o.name))
	if err != nil {
		return err
	}
	if err := c.confirm(o, e); err != nil {
		return err
	}

	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot destroy model %q: %w", e.Name, err)
	}
	defer lock.Release()

	// Another process may have destroyed the environment in the meantime. Lock has then created the directory
	// again.
	if !lock.Bootstrapped() {
		return errors.Join(fmt.Errorf("%w %q any more", home.ErrNoEnvironment, e.Name), lock.Remove())
	}

	// destroy removes the state, so read the host directories first.
	folders := describeHostFolders(o, e)
	if err := c.destroy(o, e, lock); err != nil {
		return fmt.Errorf("cannot destroy model %q: %w", e.Name, err)
	}

	for _, f := range folders {
		o.note("the content of storage stays: %s", f)
	}
	o.note("model %q is gone", e.Name)
	return nil
}

// describeHostFolders returns a description of each directory that operators have chosen for storage with
// host:/DIRECTORY: the directory, its machine and the storage in it. bijou never removes the content of these
// directories. describeHostFolders returns none if it cannot read the state.
func describeHostFolders(o *operator, e home.Environment) (folders []string) {
	var storages []state.Storage
	err := o.openUnchecked(e, func(s *state.State) (err error) {
		storages, err = state.Read(o.ctx, s, (*state.View).Storages)
		return err
	})
	if err != nil {
		// The descriptions are only for a note, so the removal can continue without them.
		return nil
	}

	idsAt := map[string][]string{}
	for _, s := range storages {
		if folder, isOnHost := strings.CutPrefix(s.Pool, charm.PoolHost+":"); isOnHost {
			place := folder + " of machine " + s.Machine
			idsAt[place] = append(idsAt[place], s.ID)
		}
	}

	for _, place := range slices.Sorted(maps.Keys(idsAt)) {
		folders = append(folders, fmt.Sprintf("%s (%s)", place, strings.Join(idsAt[place], ", ")))
	}
	return folders
}

// destroy destroys the environment under the lock. It reads the record again, since the store may have moved
// after the environment was chosen. It returns an error if a different environment now has that name, since
// the operator has not confirmed the removal of that environment.
func (c destroyModelCmd) destroy(o *operator, chosen home.Environment, lock *home.FolderLock) error {
	e, err := o.home.Environment(chosen.Name)
	if err != nil {
		return err
	}
	if e.UUID != chosen.UUID {
		return fmt.Errorf("it has been replaced by a different model, with the uuid %s", e.UUID)
	}
	if err := o.checkOriginal(e); err != nil { // refuses a copy of the environment's directory
		return err
	}

	// destroy-model records the phase Removing once it has drained the environment, or at once with --force.
	if !c.Force && e.Phase != home.Removing {
		if err := c.drain(o, e); err != nil {
			return console.Hint(err, "to remove the model without stop hooks: --force")
		}
	}
	return c.takeDown(o, e, lock)
}

// confirm makes the operator type the environment's name, and returns an error if the answer is different.
// With -y it does nothing.
func (c destroyModelCmd) confirm(o *operator, e home.Environment) error {
	if c.Yes {
		return nil
	}

	fmt.Fprintf(
		o.streams.Err, "This destroys model %q in %s with all its applications and data.\nType its name to continue: ",
		e.Name, e.Dir,
	)

	answer, err := bufio.NewReader(o.streams.In).ReadString('\n')
	// An answer without a newline at its end also gives an error, and counts.
	if err != nil && answer == "" {
		return console.Hint(errors.New("nothing was destroyed: there was no answer"), "to skip the question: -y")
	}
	if strings.TrimSpace(answer) != e.Name {
		return fmt.Errorf("nothing was destroyed: the answer was %q", strings.TrimSpace(answer))
	}

	return nil
}

// takeDown ends the environment's processes on this host, and removes its instances, its store and its files.
// It ends machine 0 first, since its provisioner would start the other machines again. If the environment was
// the one that commands without -e use, there is no such environment afterwards.
func (c destroyModelCmd) takeDown(o *operator, e home.Environment, lock *home.FolderLock) error {
	ctx, cancel := o.cleanupContext()
	defer cancel()

	// If this command is interrupted, the next one does not drain the environment again.
	e.Phase = home.Removing
	if err := e.Save(); err != nil {
		return err
	}
	dirs, err := e.MachineDirs() // machine 0's is the first
	if err != nil {
		return err
	}

	o.note("ending the processes of model %q", e.Name)
	if err := o.haltMachines(ctx, dirs); err != nil {
		return err
	}

	if err := o.parts.Providers.FreeInstances(ctx, e, o.reportSteps); err != nil {
		return err
	}
	// Programs that hooks have started have the environment's UUID in this variable.
	if err := o.parts.Hooks.EndStrays(ctx, "JUJU_ENV_UUID="+e.UUID); err != nil {
		return err
	}
	if err := o.parts.RemoveFiles(e); err != nil { // removes files outside of the environment's directory
		return err
	}
	if err := storeurl.Remove(ctx, e.State); err != nil {
		return err
	}

	// Current returns only environments that exist, so it is read before the removal.
	wasCurrent := o.home.Current() == e.Name
	if err := lock.Remove(); err != nil {
		return err
	}
	if wasCurrent {
		return o.home.SetCurrent("")
	}

	return nil
}

// haltMachines ends the processes of this host's machines, one machine after the other, and shows how many
// have ended.
func (o *operator) haltMachines(ctx context.Context, dirs []string) error {
	halted := state.Steps{What: "machines ended", Total: len(dirs)}
	for _, dir := range dirs {
		err := o.reportDuring(halted, func() error { return o.parts.Processes.Halt(ctx, dir, haltTimeout) })
		if err != nil {
			return err
		}
		halted.Done++
	}

	// All steps are done, so this removes the progress bar.
	o.reportSteps(halted)
	return nil
}

// cleanupContext returns a context for clean-up work. It stays valid for two minutes, even if the command is
// interrupted.
func (o *operator) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(o.ctx), 2*time.Minute)
}

// drain destroys the services, and returns when all services are gone or only units in error are left. If
// the stop hooks of units must still run, it starts the environment's background process, unless that runs
// already. It returns an error if the units make no progress for c.Timeout.
func (c destroyModelCmd) drain(o *operator, e home.Environment) error {
	return o.openState(e, func(s *state.State) error {
		if err := destroyServices(o.ctx, s); err != nil {
			return err
		}

		// The waiter tells the units that are still to end (pending) from those in error (failed).
		w := &settleWaiter{o: o, state: s, until: untilGone, drains: true, timeout: c.Timeout}
		left, err := state.Read(o.ctx, s, w.readSettlement)
		if err != nil {
			return err
		}

		if len(left.pending) > 0 {
			if err := o.startForStopHooks(e); err != nil {
				return err
			}

			o.note("waiting for %s", left)
			if err := w.wait(); err != nil {
				return err
			}
			left = w.seen // the last progress that wait has read
		}

		if len(left.failed) > 0 {
			o.note("%s in error will not run hooks: %s",
				formatCount(len(left.failed), "unit"), listReasons(left.failed))
		}

		return nil
	})
}

// startForStopHooks starts the background process if it does not run, since only that process runs the stop
// hooks.
func (o *operator) startForStopHooks(e home.Environment) error {
	pid, err := o.parts.Processes.Running(e.MachineDir("0"))
	if err != nil {
		return err
	}
	if pid != 0 {
		return nil
	}

	o.note("starting the background process of model %q, for its units' stop hooks", e.Name)
	return o.startBackground(e)
}

// destroyServices marks all services for removal. It ignores services that are already gone.
func destroyServices(ctx context.Context, s *state.State) error {
	services, err := state.Read(ctx, s, (*state.View).Services)
	if err != nil {
		return err
	}

	for _, service := range services {
		if err := s.DestroyService(ctx, service.Name); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}

	return nil
}
