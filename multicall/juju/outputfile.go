package juju

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bijou/state/osutil"
)

// writeOutput writes the data to where -o says. A regular file is replaced by rename, so
// that no reader ever sees half of it; anything else (a pipe, a device) is written to. The
// name of the process's own stdout or stderr means that stream.
func writeOutput(o *operator, path string, data []byte) error {
	if err := replaceOrWrite(o, path, data); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}

func replaceOrWrite(o *operator, path string, data []byte) error {
	info, err := os.Stat(path)
	for _, stream := range []any{o.streams.Out, o.streams.Err} {
		if f, isFile := stream.(*os.File); isFile && err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(own, info) {
				_, err := f.Write(data)
				return err
			}
		}
	}

	if err == nil && !info.Mode().IsRegular() {
		return writeInPlace(path, data)
	}

	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays, what it leads to is replaced
	}
	return osutil.WriteFile(path, data, 0o666)
}

func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
