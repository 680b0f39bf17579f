package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// InFolder adds the directory's path to an error that names a file relative to it, as the errors of an
// [os.Root] do. It returns all other errors unchanged.
func InFolder(err error, folder string) error {
	one, isPath := errors.AsType[*fs.PathError](err)
	two, isLink := errors.AsType[*os.LinkError](err)
	if isPath && !filepath.IsAbs(one.Path) || isLink && !filepath.IsAbs(two.New) {
		return fmt.Errorf("in %s: %w", folder, err)
	}
	return err
}
