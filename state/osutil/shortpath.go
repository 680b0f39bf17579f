package osutil

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WithShortPath calls f with a short path of the file at path. The short path is valid until f returns. It
// has at most 25 bytes, plus the file's name. WithShortPath is for sockets, whose paths are limited to 107
// bytes. The file's directory must exist, but the file need not.
func WithShortPath(path string, f func(short string) error) error {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)

	return f(fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)))
}
