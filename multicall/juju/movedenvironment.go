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

// checkStopped returns an error if an agent of the environment runs on this host. It also finds an agent
// that is still starting and has announced nothing yet.
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
			return fmt.Errorf("the agent of machine %s runs, %s: %w",
				filepath.Base(dir), o.describeProcess(pid), state.ErrRunning)
		}
	}

	return nil
}

// refuseCopy returns an error if the environment's store is a file and a different directory holds machine
// 0: then this directory is a copy, or was moved.
func (o *operator) refuseCopy(e home.Environment, s *state.State) error {
	if e.Dir == "" || !strings.HasPrefix(e.State, "sqlite:") {
		return nil // there is no folder, or hosts that share a store have each its own
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
		"if that one is gone for good: juju start --moved -e "+e.Name,
		"if it is not: leave this directory alone, or remove it")
}

// checkOriginal does what refuseCopy does, for commands that do not open the store. It ignores a store that
// cannot be opened.
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

// claimMachines makes this folder the one that the environment's machines run from: all of
// a local environment, machine 0 of any other. Processes that ran them from elsewhere end.
func (o *operator) claimMachines(e home.Environment) (home.Environment, error) {
	e, err := relocateState(e)
	if err != nil {
		return e, err
	}

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

// relocateState corrects the record of a directory that was moved, if the store lies inside it and the
// record names it by its old path.
func relocateState(e home.Environment) (home.Environment, error) {
	path, file := strings.CutPrefix(e.State, "sqlite:")
	if _, err := os.Lstat(path); !file || !errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if _, err := os.Lstat(e.StateFile()); err != nil {
		return e, nil
	}

	e.State = "sqlite:" + e.StateFile()
	return e, e.Save()
}

// claimMachine claims the machine for this directory. It waits for the end of a process of this host that
// runs the machine from a different directory.
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
		if err != nil || held && old.SamePlace(here) {
			return err
		}

		isStateInside := strings.HasPrefix(e.State, "sqlite:"+e.Dir+"/")
		if held && o.parts.Claims.IsAlive(old) && isStateInside {
			_, hint := o.describeHolder(old)
			return console.Hint(
				fmt.Errorf("cannot take machine %s over: %s still runs, with a state of its own: end it first",
					id, old),
				hint,
				"then juju start --moved again",
			)
		}

		return tx.ReassignClaim(id, &here)
	})

	switch {
	case errors.Is(err, state.ErrNotFound): // a folder that was left of a machine that is gone
		return nil
	case err != nil || !held || old.SamePlace(here):
		return err
	}

	o.note("machine %s now belongs to %s; it belonged to %s", id, here.Folder, old)
	return o.awaitHolderEnd(old)
}

// awaitHolderEnd waits until the process that ran the machine has ended. If the process does not end in
// time, awaitHolderEnd names it and lets the machine start here: the process has lost its claim and can no
// longer write.
func (o *operator) awaitHolderEnd(old state.Holder) error {
	ctx, cancel := context.WithTimeout(o.ctx, haltTimeout)
	defer cancel()

	for o.parts.Claims.IsAlive(old) && !o.parts.Claims.IsStopped(old) {
		if backoff.Sleep(ctx, processPollInterval) == nil {
			continue
		}
		if err := o.ctx.Err(); err != nil {
			return err
		}
		break
	}

	if !o.parts.Claims.IsAlive(old) {
		return nil
	}

	state, hint := o.describeHolder(old)
	o.note("warning: %s %s; it can no longer write, but a hook that it has begun may go on",
		old, state)
	o.note("hint: %s", hint)
	return nil
}

func (o *operator) describeHolder(old state.Holder) (state, hint string) {
	if o.parts.Claims.IsStopped(old) {
		return "was stopped, and cannot end", fmt.Sprintf("kill -9 %d ends it; kill -CONT %[1]d lets it go on",
			old.PID)
	}
	return "does not end", fmt.Sprintf("kill %d ends it, or kill -9 %[1]d", old.PID)
}
