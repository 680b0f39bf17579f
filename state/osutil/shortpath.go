package osutil

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WithShortPath calls f with another path of the same file, of some 40 bytes and the file's name,
// which is valid until f returns. It is for sockets: all that their address has room for is 107
// bytes. The file need not be there, but its directory must.
func WithShortPath(path string, f func(short string) error) error {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)

	return f(fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)))
}
