package juju

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backoff"
)

// checkStopped returns an error if an agent of the environment runs on this host. An agent that is about to run a
// machine, or has just stopped running it, also counts.
func (o *operator) checkStopped(e home.Environment) error {
	dirs, err := e.MachineDirs()
	if err != nil {
		return err
	}

	for _, dir := range dirs {
		pid, err := o.parts.Processes.Process(dir)
		if err != nil {
			return err
		}
		if pid != 0 {
			return fmt.Errorf("the agent of machine %s, %s, %w",
				filepath.Base(dir), o.describeProcess(pid), state.ErrRunning)
		}
	}

	return nil
}

// refuseCopy returns an error if e.Dir is a copy of the environment's directory, or was moved. That is the case
// if the environment's store is a file, and a different directory holds the claim of machine 0.
func (o *operator) refuseCopy(e home.Environment, s *state.State) error {
	if e.Dir == "" {
		// This host has no directory of the environment.
		return nil
	}
	if !strings.HasPrefix(e.State, "sqlite:") {
		// Several hosts can share this store, and each host has its own directory.
		return nil
	}

	here, err := o.parts.Claims.Holder(e.MachineDir("0"))
	if err != nil {
		return err
	}

	err = s.View(o.ctx, func(v *state.View) error { return v.CheckPlace("0", here) })
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}

	return console.Hint(fmt.Errorf("model %q in %s is a copy, or was moved: %v", e.Name, e.Dir, err),
		"if the other agent is gone for good: juju start --moved -e "+e.Name,
		"otherwise, do not use this directory, or remove it")
}

// checkOriginal is like refuseCopy, but opens the environment's store only for this check. It returns nil if it
// cannot open the store, since only the store records which directory holds the claim of machine 0.
func (o *operator) checkOriginal(e home.Environment) error {
	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	defer cancel()
	s, err := state.Open(ctx, e.State)
	if err != nil {
		return nil
	}

	err = o.refuseCopy(e, s)
	return errors.Join(err, s.Close())
}

// claimMachines claims the environment's machines for the directory e.Dir: all machines in the directory of a
// local environment, or machine 0 of any other environment. Processes that run these machines from a different
// directory then end. claimMachines returns e with the current path of its store.
func (o *operator) claimMachines(e home.Environment) (home.Environment, error) {
	e, err := relocateState(e)
	if err != nil {
		return e, err
	}

	// openState would refuse a directory that was moved.
	return e, o.openUnchecked(e, func(s *state.State) error {
		dirs, err := e.MachineDirs()
		if err != nil {
			return err
		}

		for _, dir := range dirs {
			if dir != e.MachineDir("0") && e.Provider != state.ProviderLocal {
				continue
			}
			if err := o.claimMachine(e, s, filepath.Base(dir)); err != nil {
				return err
			}
		}

		return nil
	})
}

// relocateState corrects the path of the store in the environment's record after the environment's directory was
// moved, and returns e with that path. It changes nothing unless the store is a file that does not exist at its
// recorded path, and e.StateFile() exists.
func relocateState(e home.Environment) (home.Environment, error) {
	path, isFile := strings.CutPrefix(e.State, "sqlite:")
	if !isFile {
		return e, nil
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if _, err := os.Lstat(e.StateFile()); err != nil {
		return e, nil
	}

	e.State = "sqlite:" + e.StateFile()
	return e, e.Save()
}

// claimMachine claims the machine for the directory e.Dir. If a process runs the machine from a different
// directory, claimMachine then waits for its end, as [operator.awaitHolderEnd] describes. It returns an error, and
// claims nothing, if that process would not learn that it has lost the claim. It does nothing if the claim
// belongs to e.Dir already, or if the environment has no such machine.
func (o *operator) claimMachine(e home.Environment, s *state.State, id string) error {
	here, err := o.parts.Claims.Holder(e.MachineDir(id))
	if err != nil {
		return err
	}

	here.Since = time.Now().UTC().Truncate(time.Second)
	var old state.Holder
	var held bool

	err = s.Update(o.ctx, func(tx *state.Tx) (err error) {
		old, held, err = tx.ClaimHolder(id)
		if err != nil {
			return err
		}
		if held && old.SamePlace(here) {
			return nil
		}

		// If the state lies inside e.Dir, the old process may use a different copy of the state. It then
		// does not learn that it has lost the claim, so it must end first.
		isStateInside := strings.HasPrefix(e.State, "sqlite:"+e.Dir+"/")
		isHolderAlive := held && o.parts.Claims.IsAlive(old)
		if isHolderAlive && isStateInside {
			_, hint := o.describeHolder(old)
			return console.Hint(
				fmt.Errorf("cannot take over machine %s: %s is still running, with a state of its own; stop it first",
					id, old),
				hint,
				"then juju start --moved again",
			)
		}

		return tx.ReassignClaim(id, &here)
	})

	if errors.Is(err, state.ErrNotFound) {
		// The directory is left over from a machine that was removed.
		return nil
	}
	if err != nil {
		return err
	}
	// No different directory had the claim, so there is no process to wait for.
	if !held || old.SamePlace(here) {
		return nil
	}

	o.note("machine %s now belongs to %s; it belonged to %s", id, here.Folder, old)
	return o.awaitHolderEnd(old)
}

// awaitHolderEnd waits until the process that ran a machine has ended. If the process does not end in time, or
// is suspended and so cannot end, awaitHolderEnd prints a warning and lets the machine start here. The process
// has lost its claim, so it can no longer write. awaitHolderEnd does not wait for a process on a different host.
func (o *operator) awaitHolderEnd(old state.Holder) error {
	ctx, cancel := context.WithTimeout(o.ctx, haltTimeout)
	defer cancel()

	for o.parts.Claims.IsAlive(old) && !o.parts.Claims.IsStopped(old) {
		if backoff.Sleep(ctx, processPollInterval) == nil {
			continue
		}
		// Either the operator has interrupted the command, or haltTimeout has passed.
		if err := o.ctx.Err(); err != nil {
			return err
		}
		break
	}

	if !o.parts.Claims.IsAlive(old) {
		// There is no process, the process has ended, or this command cannot see it.
		return nil
	}

	condition, hint := o.describeHolder(old)
	o.note("warning: %s %s; it can no longer write, but a hook that it has started may still be running",
		old, condition)
	o.note("hint: %s", hint)
	return nil
}

// describeHolder returns the end of a sentence about a holder whose process does not end, and a hint with the
// command that ends the process.
func (o *operator) describeHolder(old state.Holder) (condition, hint string) {
	if o.parts.Claims.IsStopped(old) {
		return "is suspended, and cannot end", fmt.Sprintf("to end it: kill -9 %d; to let it continue: kill -CONT %[1]d",
			old.PID)
	}
	return "does not end", fmt.Sprintf("to end it: kill %d, or kill -9 %[1]d", old.PID)
}
