package applet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ExecutablePath returns the path of the running binary.
func ExecutablePath() (string, error) { return findExecutable(os.Executable, os.Args[0]) }

// findExecutable falls back on the name that the program was called by, as where there is
// no /proc.
func findExecutable(executable func() (string, error), argv0 string) (string, error) {
	path, err := executable()
	if err == nil {
		return path, nil
	}
	if path, lookErr := exec.LookPath(argv0); lookErr == nil {
		if path, lookErr = filepath.EvalSymlinks(path); lookErr == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("cannot find the running binary, nor %q: %w", argv0, err)
}

// IsSameFile reports whether both paths are there and lead to one file.
func IsSameFile(a, b string) bool {
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// IsBijouName reports whether a file of that name is taken for this program, of whatever version.
func IsBijouName(name string) bool {
	return strings.HasPrefix(name, "bijou")
}
