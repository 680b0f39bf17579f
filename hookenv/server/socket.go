package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is the room in a unix socket's address, in bytes.
const maxSocketPath = 107

// The folder is closed to others, so that nobody comes in between the socket's creation and its
// mode.
func bindSocket(path string) (*net.UnixListener, os.FileInfo, error) {
	if len(path) > maxSocketPath {
		return nil, nil, fmt.Errorf(
			"cannot listen at %q: the path has %d bytes, and %d is all a unix socket may have",
			path, len(path), maxSocketPath,
		)
	}

	if err := prepareFolder(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, nil, err
	}

	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen at %q: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot close %q to others: %w", path, err), listener.Close())
	}

	listener.SetUnlinkOnClose(false) // by then another may lie there
	made, err := os.Lstat(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot look at %q: %w", path, err), listener.Close())
	}

	return listener, made, nil
}

// prepareFolder makes the folder, and not those above it: who chose them has made sure whose they
// are. A folder of another user is refused, since that user could put a socket in the place of ours.
func prepareFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make the socket's folder: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("cannot look at the socket's folder: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use the socket folder %q: it is not a folder of this user", folder)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("cannot use the socket folder %q: it has mode %#o and must have 0700", folder, mode)
	}

	return nil
}

// A socket that a process serves, or a file of another kind, is never removed.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at %q: %w", path, err)
	}

	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("cannot listen at %q: a file that is no socket is there", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("cannot listen at %q: another process serves it", path)
	}

	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot tell whether %q is served: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot remove the stale socket %q: %w", path, err)
	}

	return nil
}
