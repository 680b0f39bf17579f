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

// bindSocket listens at the path, and returns the socket's file as well, which identifies it later. It
// closes the directory to others first, so that nobody can connect between the socket's creation and its
// chmod.
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

// prepareFolder makes the socket's directory, but not those above it, which the caller has chosen as safe.
// It returns an error for a directory of another user, who could replace the socket.
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

// removeStale removes a socket that nobody serves. It returns an error if a process serves it, or if the
// path is not a socket.
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
