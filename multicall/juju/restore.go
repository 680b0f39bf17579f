package juju

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/archive"
	"bijou/state/copying"
)

type restoreCmd struct {
	File    string `arg:"" help:"The backup."`
	State   string `placeholder:"URL" help:"Where the state is to be kept, as bootstrap takes it; with --replace it is where it was."`
	Replace bool   `help:"Put the same environment back, in place of what is left of it. Agents that run end."`
	Adopt   bool   `help:"Units' folders are taken to be as the backup says: no unit waits."`
	Key     string `placeholder:"FILE" help:"The keys that open its secrets: a secret-keys.yaml. Default: those in the backup."`
	Check   bool   `help:"Only check the file, and print what is in it."`
}

// Run restores the environment and starts its background process.
func (c restoreCmd) Run(o *operator) error {
	return archive.OpenFile(c.File, archive.Environment, func(a *archive.Reader) error {
		if c.Check {
			return o.encode("yaml", a.Header)
		}
		err := c.restoreEnvironment(o, a)
		switch {
		case errors.Is(err, state.ErrStoreExists):
			err = console.Hint(err, "--state URL names another place; --replace puts the same environment back in its place")
		case errors.Is(err, state.ErrRunning):
			err = console.Hint(err, "juju stop ends the agents of this host")
		}
		return err
	})
}

func (c restoreCmd) restoreEnvironment(o *operator, a *archive.Reader) error {
	env, err := copying.BackupEnvironment(a)
	if err != nil {
		return err
	}
	o.name = cmp.Or(o.name, os.Getenv("JUJU_ENV"), env.Name)
	e, err := bootstrapCmd{Provider: env.Provider, State: c.State}.newEnvironment(o)
	if err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot restore environment %q: %w", e.Name, err)
	}
	defer lock.Release()
	r := &restore{o: o, cmd: c, archive: a, env: e}
	switch {
	case lock.Bootstrapped() && !c.Replace:
		err = console.Hint(fmt.Errorf("there is one in %s already", e.Dir), "-e NAME restores it under another name; --replace puts it back if it is the same")
	case lock.Bootstrapped():
		err = r.replaceInPlace()
	default:
		if c.Replace {
			r.env.UUID = env.UUID
		}
		b := bootstrap{o: o, cmd: bootstrapCmd{Config: env.Config}, lock: lock, env: r.env, restore: r}
		if err = b.checkProvider(); err == nil {
			err = b.run()
		}
		if err != nil && !c.Replace { // or there may be more than was made here
			err = errors.Join(err, b.undo())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot restore environment %q: %w", e.Name, err)
	}
	return nil
}

type restore struct {
	o       *operator
	cmd     restoreCmd
	archive *archive.Reader
	env     home.Environment
}

func (r *restore) replaceInPlace() error {
	now, err := home.Load(r.env.Dir)
	if err != nil {
		return err
	}
	if now.UUID != r.archive.UUID {
		return console.Hint(fmt.Errorf("the one in %s is another, with the uuid %s, and not %s", now.Dir, now.UUID, r.archive.UUID), "-e NAME restores it under another name")
	}
	if err := r.o.checkStopped(now); err != nil {
		return err
	}
	old := now.State
	if r.cmd.State != "" {
		if now.State, err = now.KeepCredentials(r.env.State); err != nil {
			return err
		}
	}
	r.env = now
	if err := os.MkdirAll(filepath.Dir(now.StateFile()), 0o700); err != nil {
		return fmt.Errorf("cannot make the state's folder: %w", err)
	}
	if err := errors.Join(r.setAsideUnknown(now), r.restoreStore(now, "")); err != nil {
		return err
	}
	if now.State != old {
		ctx, cancel := context.WithTimeout(r.o.ctx, openTimeout)
		defer cancel()
		if err := copying.MarkStoreMoved(ctx, old, now.UUID, now.State); err != nil {
			r.o.note("warning: the old store cannot be marked as left: agents that reach it go on there: %v", err)
		}
	}
	if err := errors.Join(now.Save(), now.DropCredentials()); err != nil {
		return err
	}
	return r.o.startBackground(now)
}

// restoreStore unpacks the units' folders that are not there, and fills the store.
func (r *restore) restoreStore(e home.Environment, sha256 string) error {
	if err := errors.Join(r.unpackUnits(e), r.takeSecretKeys(e)); err != nil {
		return err
	}
	copied, err := copying.Restore(r.o.ctx, copying.Restoration{
		URL: e.State, Replace: r.cmd.Replace, Adopt: r.cmd.Adopt, Fault: r.o.parts.Fault,
		Change: func(env *state.Environment) {
			env.Name, env.UUID, env.Tools = e.Name, e.UUID, e.Tools
			if sha256 != "" { // which bootstrap has set
				env.Config[state.ProviderSHA256] = sha256
			}
		},
	}, r.archive)
	if err != nil {
		return err
	}
	if err := r.noteSealed(e); err != nil {
		return err
	}
	r.o.note("  %s of %d bytes from the backup of %s, the same in the store: sha256 %s", formatCount(copied.Keys, "key"), copied.Bytes, r.archive.Time.Format("2006-01-02 15:04:05Z"), copied.SHA256)
	r.noteOutcome()
	return nil
}

func (r *restore) noteOutcome() {
	if r.cmd.Replace {
		r.o.note("  no instance is stopped until provisioner-harvest-mode is set again: some may be newer than the backup")
		r.o.note("  units whose folders are not as the backup says wait for: juju resolved UNIT")
		return
	}
	r.o.note("  it is another environment, with the uuid %s; no machine of the old one is its own", r.env.UUID)
	r.o.note("  units whose folders are not in the backup begin anew; other machines than 0 wait for: juju resolved MACHINE")
}
