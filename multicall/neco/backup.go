package neco

import (
	"errors"
	"io"
	"os"
	"strings"

	"bijou/multicall/console"
	"bijou/state/archive"
	"bijou/state/keyspace"
	"bijou/updater"
)

type backupCmd struct {
	File  string `arg:"" help:"Where it is written, readable by you only; - is stdout."`
	Force bool   `help:"Replace a file that is there."`
}

// Run writes the backup.
func (c backupCmd) Run(o *operator) error {
	return o.open(func(k *keyspace.Space) error {
		var h archive.Header
		write := func(w io.Writer) (err error) {
			h, err = updater.Backup(o.ctx, k, w, o.parts.Version)
			return err
		}
		var err error
		if c.File == "-" {
			err = write(o.streams.Out)
		} else {
			err = archive.WriteFile(c.File, c.Force, write)
		}
		if errors.Is(err, os.ErrExist) {
			err = console.Hint(err, "--force replaces it")
		}
		if err == nil {
			o.note("%d keys are backed up to %s, as of revision %d; not in it: %s", h.Keys, c.File, h.Revision, strings.Join(h.Lacks, "; "))
		}
		return err
	})
}

type restoreCmd struct {
	File    string `arg:"" help:"The backup."`
	Replace bool   `help:"Put it in the place of the keys that are there."`
}

// Run restores the keys.
func (c restoreCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	return archive.OpenFile(c.File, archive.Keyspace, func(a *archive.Reader) error {
		err := updater.Restore(o.ctx, url, a, c.Replace)
		switch {
		case errors.Is(err, updater.ErrKeysThere):
			return console.Hint(err, "--replace puts the backup in their place; --state names another place")
		case errors.Is(err, keyspace.ErrRunning):
			return console.Hint(err, "systemctl stop neco-updater neco-worker, on every boot server; one that has died is gone "+keyspace.SessionTTL.String()+" later")
		case err == nil:
			o.note("%d keys of the backup of %s are restored; look at: neco status", len(a.Keys), a.Time.Format("2006-01-02 15:04:05Z"))
		}
		return err
	})
}
