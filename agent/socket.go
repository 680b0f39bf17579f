package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bijou/state/osutil"
)

// maxSocketPath is the length of the longest path of a unix socket, in bytes.
const maxSocketPath = 107

// socketRecord is a file in a machine's directory. It contains the path of the directory with the sockets of
// the machine's units. Other programs read this file, since they cannot derive that path.
const socketRecord = "sockets"

// makeMachineSockets creates the directory for a machine's sockets, records the directory's path in the
// machine's directory, and returns that path. It is idempotent.
func makeMachineSockets(uuid, machineDir string) (string, error) {
	dir, err := makeSocketDir(uuid, machineDir)
	if err != nil {
		return "", err
	}

	record := filepath.Join(machineDir, socketRecord)
	text := dir + "\n"
	if old, err := os.ReadFile(record); err == nil && string(old) == text {
		return dir, nil
	}
	if err := osutil.WriteFile(record, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("cannot record the directory of the sockets: %w", err)
	}

	return dir, nil
}

// removeMachineSockets removes the directory of a machine's sockets, and then the file socketRecord, which
// contains the directory's path. It keeps both if a socket is left in the directory, such as that of another
// process.
func removeMachineSockets(machineDir string) {
	record := filepath.Join(machineDir, socketRecord)
	dir, err := os.ReadFile(record)
	if err != nil {
		return
	}

	// This removes only an empty directory.
	err = os.Remove(strings.TrimSpace(string(dir)))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(record) // the next agent creates both again
	}
}

// makeSocketDir creates a directory for sockets if it is missing, and returns its path. Only the directory's
// owner can enter it. The path is short enough for the paths of sockets in the directory. The same UUID and
// name always yield the same directory.
func makeSocketDir(uuid, name string) (string, error) { return userSockets().makeIn(uuid, name) }

// makeIn creates a private directory in the base if it is missing, and returns its path. The directory's name
// is derived from the environment's UUID and the given name.
func (b socketBase) makeIn(uuid, name string) (string, error) {
	for {
		base, err := b.make()
		if err != nil {
			return "", err
		}

		dir := filepath.Join(base, shortHash(uuid, 8)+"-"+shortHash(name, 8))
		// If the parent of dir does not exist, another process has just removed it as empty. Try again.
		err = makePrivateDir(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
}

// RemoveSockets removes all socket directories of an environment on this host. Agents that were killed leave
// such directories behind. The caller must have ended the environment's agents.
func RemoveSockets(uuid string) error { return userSockets().remove(uuid) }

// remove removes all socket directories of an environment, including those that older agents created. It also
// removes a base that is empty afterwards.
func (b socketBase) remove(uuid string) error {
	bases := b.list()
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases = append(bases, filepath.Join(dir, "bijou")) // older agents created their sockets here
	}

	for _, base := range bases {
		entries, err := os.ReadDir(base)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot look for sockets: %w", err)
		}

		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), shortHash(uuid, 8)+"-") {
				continue
			}
			if err := os.RemoveAll(filepath.Join(base, e.Name())); err != nil {
				return fmt.Errorf("cannot remove sockets: %w", err)
			}
		}
		_ = os.Remove(base) // fails unless the base is empty; the next agent creates the base again
	}

	return nil
}

// socketBase is the directory that contains one user's socket directories. Its path is parent/name. In a parent
// such as /tmp, another user can create that path first. The base is then parent/name-RANDOM.
type socketBase struct{ parent, name string }

// userSockets returns the base of this user's sockets. It does not use XDG_RUNTIME_DIR, since agents can
// outlive that directory: logind removes it at the last logout unless the user lingers.
func userSockets() socketBase { return socketsOf(os.Geteuid()) }

// socketsOf returns the base of the sockets of the user with the given UID.
func socketsOf(uid int) socketBase {
	if uid == 0 {
		return socketBase{"/run", "bijou"}
	}
	return socketBase{"/tmp", "bijou-" + strconv.Itoa(uid)}
}

// make creates the base if it is missing, and returns its path. If the path parent/name exists and is not a
// directory of this user, make finds or creates a directory with a random suffix.
func (b socketBase) make() (string, error) {
	if err := os.MkdirAll(b.parent, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the directory of sockets: %w", err)
	}

	path := filepath.Join(b.parent, b.name)
	err := makePrivateDir(path)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, errNotOwn) {
		return "", err
	}

	others, err := filepath.Glob(path + "-*")
	if err != nil {
		return "", fmt.Errorf("cannot find a socket directory: %w", err)
	}

	for _, other := range others {
		if isPrivateDir(other) { // an earlier call has created it
			return other, nil
		}
	}

	made, err := os.MkdirTemp(b.parent, b.name+"-")
	if err != nil {
		return "", fmt.Errorf("cannot create the directory of sockets: %w", err)
	}
	return made, nil
}

// list returns all directories that this user has created as the base, with and without a random suffix.
func (b socketBase) list() []string {
	path := filepath.Join(b.parent, b.name)
	found, _ := filepath.Glob(path + "-*") // the pattern is valid

	return slices.DeleteFunc(append([]string{path}, found...), func(dir string) bool {
		return !isPrivateDir(dir)
	})
}

// errNotOwn is returned for a path that is not a directory of this user. In /tmp, another user may have created
// the path first.
var errNotOwn = errors.New("not a directory that this user owns")

// makePrivateDir creates a directory that only this user can enter. If the directory exists, makePrivateDir
// denies other users access to it. It returns errNotOwn if the path belongs to another user, is a symlink or a
// file, or if this user has no permission to open it.
func makePrivateDir(path string) error {
	for {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot create the directory of sockets: %w", err)
		}

		// If the directory does not exist, an agent that ended has just removed it as empty. Try again.
		err := closeToOthers(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// closeToOthers removes all permissions of group and others from a directory. It returns errNotOwn if this user
// does not own the directory, and for the same paths as openDir. It works on the open directory, since other
// users could replace the path between two calls.
func closeToOthers(path string) error {
	dir, st, err := openDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()

	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use %q for sockets: %w", path, errNotOwn)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	if err := dir.Chmod(0o700); err != nil {
		return fmt.Errorf("cannot deny other users access to the directory of sockets: %w", err)
	}

	return nil
}

// isPrivateDir reports whether a path is a directory that belongs to this user, and that only this user can
// enter.
func isPrivateDir(path string) bool {
	dir, st, err := openDir(path)
	if err != nil {
		return false
	}
	defer dir.Close()

	return int(st.Uid) == os.Geteuid() && st.Mode&0o077 == 0
}

// openDir opens a directory, and returns its owner and mode in st. It returns errNotOwn if the path is a
// symlink or a file, or if this user has no permission to open it.
func openDir(path string) (dir *os.File, st unix.Stat_t, err error) {
	dir, err = os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	noPermission := errors.Is(err, unix.EACCES)
	isSymlink := errors.Is(err, unix.ELOOP)
	isFile := errors.Is(err, unix.ENOTDIR)
	if noPermission || isSymlink || isFile {
		return nil, st, fmt.Errorf("cannot use %q for sockets: %w", path, errNotOwn)
	}
	if err != nil {
		return nil, st, fmt.Errorf("cannot open the directory of sockets: %w", err)
	}

	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return nil, st, fmt.Errorf("cannot examine the directory of sockets %q: %w", path, err)
	}
	return dir, st, nil
}

// socketPath returns the path of a unit's socket in a socket directory. If the unit's name makes the path too
// long for a socket, the file's name is a hash of the unit's name.
func socketPath(dir, unit string) string {
	path := filepath.Join(dir, strings.ReplaceAll(unit, "/", "-"))
	if len(path) > maxSocketPath {
		path = filepath.Join(dir, shortHash(unit, 16))
	}
	return path
}

// shortHash returns the first n hex digits of a name's digest.
func shortHash(name string, n int) string { return osutil.Digest([]byte(name))[:n] }

// UnitSockets returns the paths of the sockets of a unit's agents. It finds agents that this user runs on this
// host, in all environments. If unit is empty, it returns the sockets of all units, and possibly sockets that
// are not of units. Some sockets may have no server, since agents that were killed leave their sockets behind.
func UnitSockets(unit string) (paths []string) {
	for _, base := range userSockets().list() {
		dirs, _ := filepath.Glob(filepath.Join(base, "*")) // the pattern is valid

		for _, dir := range dirs {
			if unit != "" {
				paths = append(paths, socketPath(dir, unit))
				continue
			}
			sockets, _ := filepath.Glob(filepath.Join(dir, "*"))
			paths = append(paths, sockets...)
		}
	}

	// Leave out paths that do not exist or are not sockets.
	return slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		return err != nil || info.Mode().Type() != fs.ModeSocket
	})
}

// DoFolder creates a directory for the sockets of `juju do`, and returns its path. Only the owner can enter
// the directory, and its path is short enough for the paths of sockets in it. RemoveSockets removes it.
func DoFolder(uuid string) (string, error) { return makeSocketDir(uuid, "do") }

// ProviderFolder creates a directory for the sockets of a provider's process, and returns its path. Only the
// owner can enter the directory, and its path is short enough for the paths of sockets in it. RemoveSockets
// removes it.
func ProviderFolder(uuid string) (string, error) { return makeSocketDir(uuid, "provider") }
