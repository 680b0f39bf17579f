package juju

import (
	"cmp"
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
	"bijou/state/copying"
	"bijou/state/durable"
	"bijou/state/wrap"
)

type migrateStateCmd struct {
	To   string `arg:"" name:"url" help:"Where the state is to be: etcd://HOST:PORT,.../PREFIX?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE (the options as needed), or sqlite:PATH; \"sqlite:\" is a file in the environment's folder."`
	Keep bool   `help:"Leave the old store where it is, marked as moved; otherwise it goes once the new one is in use."`
}

// Run moves the state.
func (c migrateStateCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot migrate environment %q: %w", e.Name, err)
	}
	defer lock.Release()
	if e, err = o.home.Environment(e.Name); err != nil { // somebody else may have been at work
		return err
	}
	if err = o.checkOriginal(e); err == nil {
		err = c.migrate(o, e)
	}
	if err != nil { // until it is finished the old store's credentials are needed
		return withMigrationHint(fmt.Errorf("cannot migrate environment %q: %w", e.Name, err), e)
	}

	now, err := home.Load(e.Dir)
	if err == nil {
		err = now.DropCredentials()
	}
	return wrap.Error(err, "environment %q has its state there, but cannot drop the credentials of the old store", e.Name)
}

func withMigrationHint(err error, e home.Environment) error {
	switch {
	case errors.Is(err, state.ErrRunning):
		return console.Hint(err, "juju stop -e "+e.Name+" ends those of this host, and systemctl stop 'bijou-*' those of another",
			"one that has died is gone "+state.SessionTTL.String()+" later")
	case errors.Is(err, state.ErrStoreExists):
		return console.Hint(err, "give a place of its own: another prefix, or another file")
	}
	return err
}

func (c migrateStateCmd) migrate(o *operator, e home.Environment) error {
	to, err := c.targetURL(e)
	if err != nil {
		return err
	}
	if to == e.State {
		return c.finishMigration(o, e)
	}
	if err := o.checkStopped(e); err != nil {
		return err
	}
	o.note("copying the state of environment %q from %s to %s", e.Name, e.State, to)
	old := e.State
	copied, err := copying.Migrate(o.ctx, copying.Migration{
		From: old, To: to, Keep: c.Keep, Fault: o.parts.Fault,
		Switch: func() error {
			e.State = to
			return e.Save()
		},
	})
	if err != nil {
		return err
	}
	o.warnOfStore(to)
	o.note("  %s of %d bytes, the same in both stores: sha256 %s", formatCount(copied.Keys, "key"), copied.Bytes, copied.SHA256)
	if c.Keep {
		o.note("  the old store stays, marked as moved: %s", old)
	}
	o.note("environment %q has its state in %s; go on with: juju start -e %s", e.Name, to, e.Name)
	return nil
}

// finishMigration completes a migration that was interrupted at its end.
func (c migrateStateCmd) finishMigration(o *operator, e home.Environment) error {
	err := copying.FinishMigration(o.ctx, e.State)
	if errors.Is(err, state.ErrNotFound) {
		o.note("environment %q has its state in %s already", e.Name, e.State)
		return nil
	}
	if err != nil {
		return err
	}
	o.note("environment %q has its state in %s; the migration that was cut off is finished", e.Name, e.State)
	return nil
}

// targetURL makes paths absolute and keeps the credentials that the URL names.
func (c migrateStateCmd) targetURL(e home.Environment) (string, error) {
	path, file := strings.CutPrefix(c.To, "sqlite:")
	if !file {
		return e.KeepCredentials(c.To)
	}
	if e.Provider == "ssh" {
		return "", console.Usage(errors.New("machines of the provider \"ssh\" are on other hosts, which cannot read a file of this one"))
	}
	path, err := filepath.Abs(cmp.Or(path, e.StateFile()))
	if err != nil {
		return "", fmt.Errorf("cannot find the file: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("cannot make the state's folder: %w", err)
	}
	return "sqlite:" + path, nil
}

// checkStopped finds processes of this host which are just starting and have announced nothing yet.
func (o *operator) checkStopped(e home.Environment) error {
	dirs, err := e.MachineDirs()
	if err != nil {
		return err
	}

	for _, dir := range dirs {
		pid, err := o.parts.Agents.Process(dir)
		if err != nil {
			return err
		}
		if pid != 0 {
			return fmt.Errorf("the agent of machine %s runs, %s: %w", filepath.Base(dir), o.describeProcess(pid), state.ErrRunning)
		}
	}
	return nil
}

// refuseCopy refuses to work on an environment in a file whose machine 0 is another
// folder's: this one is a copy, or was moved.
func (o *operator) refuseCopy(e home.Environment, s *state.State) error {
	if e.Dir == "" || !strings.HasPrefix(e.State, "sqlite:") {
		return nil // there is no folder, or hosts that share a store have each its own
	}
	here, err := o.parts.Agents.Holder(e.MachineDir("0"))
	if err != nil {
		return err
	}
	err = s.View(o.ctx, func(v *state.View) error { return v.CheckPlace("0", here) })
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}
	return console.Hint(fmt.Errorf("environment %q in %s is a copy, or was moved: %v", e.Name, e.Dir, err),
		"if that one is gone for good: juju start --moved -e "+e.Name,
		"if it is not: leave this folder alone, or remove it")
}

// checkOriginal is refuseCopy for commands that do not open the store. A store that cannot
// be opened is no reason to refuse.
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

// relocateState corrects the record of a moved folder whose state is inside, and is named
// by the old path.
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

// claimMachine waits for the end of a process of this host that ran the machine from
// another folder.
func (o *operator) claimMachine(e home.Environment, s *state.State, id string) error {
	here, err := o.parts.Agents.Holder(e.MachineDir(id))
	if err != nil {
		return err
	}
	here.Since = time.Now().UTC().Truncate(time.Second)
	var old state.Holder
	var held bool
	err = s.Update(o.ctx, func(tx *state.Tx) (err error) {
		if old, held, err = tx.ClaimHolder(id); err != nil || held && old.SamePlace(here) {
			return err
		}
		isStateInside := strings.HasPrefix(e.State, "sqlite:"+e.Dir+"/")
		if held && o.parts.Agents.IsAlive(old) && isStateInside {
			_, hint := o.describeHolder(old)
			return console.Hint(fmt.Errorf("cannot take machine %s over: %s still runs, with a state of its own: end it first", id, old), hint, "then juju start --moved again")
		}
		return tx.ReassignClaim(id, &here)
	})
	switch {
	case errors.Is(err, state.ErrNotFound): // a folder that was left of a machine that is gone
		return nil
	case err != nil || !held || old.SamePlace(here):
		return err
	}
	o.note("machine %s is that of %s now, and was that of %s", id, here.Folder, old)
	return o.awaitHolderEnd(old)
}

// awaitHolderEnd says which process has not ended, and lets the machine begin here all the same: that
// process has lost its claim, so that nothing more of it is written.
func (o *operator) awaitHolderEnd(old state.Holder) error {
	ctx, cancel := context.WithTimeout(o.ctx, haltTimeout)
	defer cancel()
	for o.parts.Agents.IsAlive(old) && !o.parts.Agents.IsStopped(old) {
		if backoff.Sleep(ctx, processPollInterval) == nil {
			continue
		}
		if err := o.ctx.Err(); err != nil {
			return err
		}
		break
	}
	if !o.parts.Agents.IsAlive(old) {
		return nil
	}

	state, hint := o.describeHolder(old)
	o.note("warning: %s %s; nothing of it is written any more, but a hook that it has begun may go on", old, state)
	o.note("hint: %s", hint)
	return nil
}

func (o *operator) describeHolder(old state.Holder) (state, hint string) {
	if o.parts.Agents.IsStopped(old) {
		return "was stopped, and cannot end", fmt.Sprintf("kill -9 %d ends it; kill -CONT %[1]d lets it go on", old.PID)
	}
	return "does not end", fmt.Sprintf("kill %d ends it, or kill -9 %[1]d", old.PID)
}
