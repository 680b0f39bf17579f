package juju

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
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
	if err == nil {
		for _, stream := range []any{o.streams.Out, o.streams.Err} {
			if f := matchStream(stream, info); f != nil {
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
	return renameio.WriteFile(path, data, 0o666, renameio.WithTempDir(filepath.Dir(path)))
}

func matchStream(stream any, info os.FileInfo) *os.File {
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	own, err := f.Stat()
	if err != nil || !os.SameFile(own, info) {
		return nil
	}
	return f
}

func writeInPlace(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
