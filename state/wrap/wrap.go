// Package wrap puts what could not be done in front of an error. It is a leaf: everybody may
// import it.
package wrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Error returns err behind the text and a colon, as in "cannot read FILE: ..."; nil if err is nil.
func Error(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Result is Error for a function with several ends, which defers it: *err is what it returns.
// The arguments are as they were when it was deferred.
func Result(err *error, format string, args ...any) { *err = Error(*err, format, args...) }

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

// Unless returns err, but nil for one that errors.Is takes for the target: it is no failure there.
func Unless(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return err
}
