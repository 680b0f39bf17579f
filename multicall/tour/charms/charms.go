// Package charms holds the example charms that are inside the binary: mysql and
// wordpress, the first ones a newcomer sees. It is files and the writing of
// them, no more; the quickstart and tests may import it.
package charms

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed mysql wordpress
var files embed.FS

// Write writes the charms below dir, each into a folder of its name. Hooks get
// their exec bits, which embedding loses. Files that are there are not
// overwritten: that is an error.
func Write(dir string) error {
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		return writeFile(to, name)
	})
	if err != nil {
		return fmt.Errorf("cannot write example charms: %w", err)
	}
	return nil
}

func writeFile(to, name string) error {
	data, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if path.Base(path.Dir(name)) == "hooks" {
		err = errors.Join(err, f.Chmod(0o755))
	}
	return errors.Join(err, f.Close())
}
