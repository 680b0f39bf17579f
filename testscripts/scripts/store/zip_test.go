package store

import (
	"archive/zip"
	"io"
	"os"
)

// zipFolder packs a folder as bundles are.
func zipFolder(dir string, to io.Writer) error {
	w := zip.NewWriter(to)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		return err
	}
	return w.Close()
}
