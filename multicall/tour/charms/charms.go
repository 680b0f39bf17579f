// Package charms holds the example charms that are inside the binary: mysql and
// wordpress, the first ones a newcomer sees. It is files and the writing of
// them, no more; the quickstart and tests may import it.
package charms

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed mysql wordpress
var files embed.FS

// Write writes the charms below dir, each into a directory of its name. It sets the exec bits of hooks,
// which embedding loses. It returns an error if a file exists already.
func Write(dir string) error {
	err := os.CopyFS(dir, files)
	hooks, _ := fs.Glob(files, "*/hooks/*") // the pattern is right
	for _, hook := range hooks {
		if err == nil {
			err = os.Chmod(filepath.Join(dir, hook), 0o755)
		}
	}

	if err != nil {
		return fmt.Errorf("cannot write example charms: %w", err)
	}

	return nil
}
