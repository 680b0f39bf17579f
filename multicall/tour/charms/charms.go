// Package charms has the files of the example charms inside the binary, mysql
// and wordpress, which are the first charms that a newcomer sees.
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

// Write writes the charms below dir, each into a directory with its name. It makes the hooks executable, since embedded
// files have no modes. It returns an error if a file already exists.
func Write(dir string) error {
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("cannot write example charms: %w", err)
	}

	// Glob fails only for an invalid pattern.
	hooks, _ := fs.Glob(files, "*/hooks/*")
	for _, hook := range hooks {
		if err := os.Chmod(filepath.Join(dir, hook), 0o755); err != nil {
			return fmt.Errorf("cannot write example charms: %w", err)
		}
	}

	return nil
}
