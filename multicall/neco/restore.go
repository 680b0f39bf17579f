package neco

import (
	"errors"

	"bijou/multicall/console"
	"bijou/state/backupfile"
	"bijou/state/keyspace"
	"bijou/updater"
)

type restoreCmd struct {
	File    string `arg:"" help:"The backup."`
	Replace bool   `help:"Replace the existing keys."`
}

// Run restores the keys from the backup, and prints their number. It returns an error with a hint if the
// store has keys and --replace is not given, or if daemons are running.
func (c restoreCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}

	return backupfile.OpenFile(c.File, backupfile.Keyspace, func(a *backupfile.Reader) error {
		err := updater.Restore(o.ctx, url, a, c.Replace)
		switch {
		case errors.Is(err, updater.ErrKeysThere):
			return console.Hint(err, "to replace the existing keys: --replace; to restore to a different store: --state URL")
		case errors.Is(err, keyspace.ErrRunning):
			return console.Hint(
				err,
				"on every boot server: systemctl stop neco-updater neco-worker; a daemon that has died disappears from the store after "+
					keyspace.SessionTTL.String(),
			)
		case err == nil:
			o.note("restored %d keys from the backup of %s; now check: neco status",
				len(a.Keys), a.Time.UTC().Format("2006-01-02 15:04:05Z"))
		}

		return err
	})
}
