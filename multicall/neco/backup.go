package neco

import (
	"errors"
	"io"
	"os"
	"strings"

	"bijou/multicall/console"
	"bijou/state/backupfile"
	"bijou/state/keyspace"
	"bijou/updater"
)

type backupCmd struct {
	File  string `arg:"" help:"The file to write, readable only by you; - is stdout."`
	Force bool   `help:"Replace an existing file."`
}

// Run writes the backup to the file, or to stdout if the file is -. It replaces an existing file only with --force.
// It prints how many keys the backup has and which data it lacks.
func (c backupCmd) Run(o *operator) error {
	return o.open(func(k *keyspace.Space) error {
		var header backupfile.Header
		write := func(w io.Writer) (err error) {
			header, err = updater.Backup(o.ctx, k, w, o.parts.Version)
			return err
		}

		var err error
		if c.File == "-" {
			err = write(o.streams.Out)
		} else {
			err = backupfile.WriteFile(c.File, c.Force, write)
		}
		if errors.Is(err, os.ErrExist) {
			return console.Hint(err, "to replace the file: --force")
		}
		if err != nil {
			return err
		}

		o.note("%d keys are backed up to %s, as of revision %d; not included: %s",
			header.Keys, c.File, header.Revision, strings.Join(header.Lacks, "; "))
		return nil
	})
}
