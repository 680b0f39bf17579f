package juju

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/copying"
	"bijou/state/osutil"
)

type migrateStateCmd struct {
	To   string `arg:"" name:"url" help:"The new store: etcd://HOST:PORT,.../PREFIX?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE (options as needed), or sqlite:PATH; \"sqlite:\" is a file in the model's directory."`
	Keep bool   `help:"Keep the old store, marked as moved. By default it is removed once the new store is in use."`
}

// Run moves the environment's state to a different store, under the lock of the environment's directory. Then it
// removes the copies of the old store's credentials in that directory, even with --keep.
func (c migrateStateCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot migrate model %q: %w", e.Name, err)
	}
	defer lock.Release()

	// Another command may have changed the record before this command got the lock.
	if e, err = o.home.Environment(e.Name); err != nil {
		return err
	}

	if err := c.migrate(o, e); err != nil {
		return withMigrationHint(fmt.Errorf("cannot migrate model %q: %w", e.Name, err), e)
	}

	// The environment no longer uses the old store, and does not need its credentials.
	if err := dropOldCredentials(e.Dir); err != nil {
		return fmt.Errorf(
			"the state of model %q was moved, but the credentials of the old store cannot be removed: %w",
			e.Name, err,
		)
	}

	return nil
}

// dropOldCredentials removes credentials from the environment's directory dir, except those that the saved
// record of the environment names.
func dropOldCredentials(dir string) error {
	e, err := home.Load(dir)
	if err != nil {
		return err
	}
	return e.DropCredentials()
}

// withMigrationHint adds a hint to the errors that an operator can resolve.
func withMigrationHint(err error, e home.Environment) error {
	switch {
	case errors.Is(err, state.ErrRunning):
		return console.Hint(err, "juju stop -e "+e.Name+
			" ends the agents of this host; on other hosts: systemctl stop 'bijou-*'",
			"an agent that has died disappears from the state after "+state.SessionTTL.String())
	case errors.Is(err, state.ErrStoreExists):
		return console.Hint(err, "choose a different prefix or file")
	}

	return err
}

// migrate copies the environment's state to the new store and switches to that store. If the environment
// already uses the new store, migrate only finishes a migration that was interrupted after the switch, if any.
func (c migrateStateCmd) migrate(o *operator, e home.Environment) error {
	if err := o.checkOriginal(e); err != nil { // refuses a copy of the environment's directory
		return err
	}

	to, err := c.targetURL(e)
	if err != nil {
		return err
	}
	if to == e.State {
		return c.finishMigration(o, e)
	}
	if err := o.checkStopped(e); err != nil { // refuses while an agent runs on this host
		return err
	}

	o.note("copying the state of model %q from %s to %s", e.Name, e.State, to)
	old := e.State // Switch replaces e.State
	copied, err := copying.Migrate(o.ctx, copying.Migration{
		From:     old,
		To:       to,
		Keep:     c.Keep,
		Fault:    o.parts.Fault,
		Progress: o.reportSteps,
		Switch: func() error {
			// From here on, the environment uses the new store.
			e.State = to
			return e.Save()
		},
	})
	if err != nil {
		return err
	}

	o.warnOfStore(to)
	o.note("  %s of %d bytes, identical in both stores: sha256 %s",
		formatCount(copied.Keys, "key"), copied.Bytes, copied.SHA256)
	if c.Keep {
		o.note("  the old store stays, marked as moved: %s", old)
	}
	o.note("the state of model %q is now in %s; to continue: juju start -e %s", e.Name, to, e.Name)
	return nil
}

// finishMigration completes a migration that was interrupted after the switch to e.State. Whether the old store
// stays depends on the --keep of that migration, and not on c.Keep. If there is no such migration,
// finishMigration only prints that the state is already in the store.
func (c migrateStateCmd) finishMigration(o *operator, e home.Environment) error {
	err := copying.FinishMigration(o.ctx, e.State)
	if errors.Is(err, state.ErrNotFound) {
		o.note("the state of model %q is already in %s", e.Name, e.State)
		return nil
	}
	if err != nil {
		return err
	}

	o.note("the state of model %q is now in %s; the interrupted migration is finished", e.Name, e.State)
	return nil
}

// targetURL returns the URL of the new store. The path of a SQLite URL becomes absolute, and its directory is
// created. A SQLite URL without a path means the file in the environment's directory. targetURL refuses a SQLite
// URL if machines are on other hosts. For any other store, targetURL copies the credentials that the URL names
// into the environment's directory, and returns the URL with the paths of the copies.
func (c migrateStateCmd) targetURL(e home.Environment) (string, error) {
	path, isFile := strings.CutPrefix(c.To, "sqlite:")
	if !isFile {
		return e.KeepCredentials(c.To)
	}
	if e.Provider == "ssh" {
		return "", console.Usage(errors.New("machines of the provider \"ssh\" are on other hosts, which cannot read a file on this host"))
	}

	path, err := filepath.Abs(cmp.Or(path, e.StateFile()))
	if err != nil {
		return "", fmt.Errorf("cannot find the file: %w", err)
	}
	if err := osutil.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("cannot create the state's directory: %w", err)
	}

	return "sqlite:" + path, nil
}
