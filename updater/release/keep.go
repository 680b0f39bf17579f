package release

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"

	"bijou/state/durable"
)

// Keep writes a file so that after a loss of power it is there as it was or as it is
// now, and as it is now once Keep has returned.
func Keep(path string, data []byte, mode fs.FileMode) error {
	if err := renameio.WriteFile(path, data, mode, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}
