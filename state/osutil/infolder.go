package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// InFolder puts the folder in front of an error of one of its files that names it relative to that, as an
// [os.Root] does. Any other error it returns as it is.
func InFolder(err error, folder string) error {
	one, isPath := errors.AsType[*fs.PathError](err)
	two, isLink := errors.AsType[*os.LinkError](err)
	if isPath && !filepath.IsAbs(one.Path) || isLink && !filepath.IsAbs(two.New) {
		return fmt.Errorf("in %s: %w", folder, err)
	}
	return err
}
