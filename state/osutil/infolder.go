package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// InFolder adds the directory's path to an error that names a file by a relative path, as the errors of an
// [os.Root] do. It returns all other errors, and nil, unchanged.
func InFolder(err error, folder string) error {
	pathErr, isPathErr := errors.AsType[*fs.PathError](err)
	linkErr, isLinkErr := errors.AsType[*os.LinkError](err)
	// Old of a LinkError does not count, since it can be the absolute target of a symlink.
	isRelative := isPathErr && !filepath.IsAbs(pathErr.Path) || isLinkErr && !filepath.IsAbs(linkErr.New)
	if isRelative {
		return fmt.Errorf("in %s: %w", folder, err)
	}
	return err
}
