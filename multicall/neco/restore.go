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
	Replace bool   `help:"Put it in the place of the keys that are there."`
}

func (c restoreCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}

	return backupfile.OpenFile(c.File, backupfile.Keyspace, func(a *backupfile.Reader) error {
		err := updater.Restore(o.ctx, url, a, c.Replace)
		switch {
		case errors.Is(err, updater.ErrKeysThere):
			return console.Hint(err, "--replace puts the backup in their place; --state names another place")
		case errors.Is(err, keyspace.ErrRunning):
			return console.Hint(
				err,
				"systemctl stop neco-updater neco-worker, on every boot server; one that has died is gone "+
					keyspace.SessionTTL.String()+" later",
			)
		case err == nil:
			o.note("%d keys of the backup of %s are restored; look at: neco status",
				len(a.Keys), a.Time.UTC().Format("2006-01-02 15:04:05Z"))
		}

		return err
	})
}
