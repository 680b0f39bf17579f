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

// maxSocketPath is the length of the longest path of a unix socket, in bytes.
const maxSocketPath = 107

// bindSocket listens at the path, where it replaces a socket that no process serves. It also returns the socket's
// file info, by which the server later recognizes the socket. Before it creates the socket, it makes sure that only the
// owner can enter the directory. So no other user can connect before the socket's mode is set.
func bindSocket(path string) (*net.UnixListener, os.FileInfo, error) {
	if len(path) > maxSocketPath {
		return nil, nil, fmt.Errorf(
			"cannot listen at %q: the path has %d bytes; the limit for a unix socket is %d",
			path, len(path), maxSocketPath,
		)
	}

	if err := prepareDirectory(filepath.Dir(path)); err != nil {
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
		return nil, nil, errors.Join(fmt.Errorf("cannot deny other users access to %q: %w", path, err), listener.Close())
	}

	listener.SetUnlinkOnClose(false) // when the listener closes, a different socket may be at the path
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot examine %q: %w", path, err), listener.Close())
	}

	return listener, info, nil
}

// prepareDirectory creates the socket's directory if it is missing, but not its parents. It returns an error unless only
// the process's own user has access to the directory, since other users could replace the socket.
func prepareDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot create the socket's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("cannot examine the socket's directory: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use the socket directory %q: it is not a directory of this user", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("cannot use the socket directory %q: it has mode %#o and must have 0700", dir, mode)
	}

	return nil
}

// removeStale removes a socket that no process serves any longer. It returns nil if there is no file at the path. It
// returns an error if a process serves the socket, or if the file is not a socket.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot examine %q: %w", path, err)
	}

	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("cannot listen at %q: the existing file is not a socket", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("cannot listen at %q: another process serves it", path)
	}

	// The kernel refuses the connection if no process serves the socket.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot find out whether a process serves %q: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot remove the stale socket %q: %w", path, err)
	}

	return nil
}
