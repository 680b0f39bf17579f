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

// maxSocketPath is the size of a unix socket's address, in bytes.
const maxSocketPath = 107

// socketRecord is a file in a machine's folder. It holds the path of the folder with the sockets of
// the machine's units, for programs that look for them: no rule says where that folder is.
const socketRecord = "sockets"

// makeMachineSockets makes the directory of a machine's sockets, records its path in the machine's
// directory, and returns it. It is idempotent.
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
		return "", fmt.Errorf("cannot record where the sockets are: %w", err)
	}

	return dir, nil
}

// removeMachineSockets removes the sockets' directory that the machine's directory records, and the record.
// It keeps both if another process has a socket there.
func removeMachineSockets(machineDir string) {
	record := filepath.Join(machineDir, socketRecord)
	dir, err := os.ReadFile(record)
	if err != nil {
		return
	}

	if err := os.Remove(strings.TrimSpace(string(dir))); err == nil || errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(record) // the next agent makes both again
	}
}

// makeSocketDir makes a directory for sockets that only its owner can enter. Its path is short, as the
// address of a socket must be.
func makeSocketDir(uuid, name string) (string, error) { return userSockets().makeIn(uuid, name) }

// makeIn makes a private directory for a socket of the environment and agent.
func (b socketBase) makeIn(uuid, name string) (string, error) {
	for {
		base, err := b.make()
		if err != nil {
			return "", err
		}

		dir := filepath.Join(base, shortHash(uuid, 8)+"-"+shortHash(name, 8))
		err = makePrivateDir(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // else another process has removed the base as an empty one
			return "", err
		}
	}
}

// RemoveSockets removes the folders of all sockets of an environment's machines on this host. Agents that
// were killed leave them behind. The caller must have ended the environment's agents.
func RemoveSockets(uuid string) error { return userSockets().remove(uuid) }

// remove removes all sockets' directories of an environment, also those that older agents made. It removes
// the base too if that is empty.
func (b socketBase) remove(uuid string) error {
	bases := b.list()
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		bases = append(bases, filepath.Join(dir, "bijou")) // of agents that were older
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
		_ = os.Remove(base) // only if it is empty; the next agent makes it again
	}

	return nil
}

// socketBase is where one user's folders of sockets are: in the folder called name below parent.
// Where anybody may make folders in parent, another user can take that name first. Then they are in
// one called name-RANDOM.
type socketBase struct{ parent, name string }

// userSockets returns a base that lasts as long as agents do: XDG_RUNTIME_DIR does not,
// since logind removes it at the last logout unless the user lingers.
func userSockets() socketBase { return socketsOf(os.Geteuid()) }

func socketsOf(uid int) socketBase {
	if uid == 0 {
		return socketBase{"/run", "bijou"}
	}
	return socketBase{"/tmp", "bijou-" + strconv.Itoa(uid)}
}

// make returns the base's directory, after it has made sure that only this user could have made it. If
// another user has taken the name, it makes or finds one with a random suffix.
func (b socketBase) make() (string, error) {
	if err := os.MkdirAll(b.parent, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of sockets: %w", err)
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
		return "", fmt.Errorf("cannot look for a folder of sockets: %w", err)
	}

	for _, other := range others {
		if isPrivateDir(other) {
			return other, nil
		}
	}

	made, err := os.MkdirTemp(b.parent, b.name+"-")
	if err != nil {
		return "", fmt.Errorf("cannot make the folder of sockets: %w", err)
	}
	return made, nil
}

// list returns the base's folders that are there and this user's.
func (b socketBase) list() []string {
	path := filepath.Join(b.parent, b.name)
	found, _ := filepath.Glob(path + "-*") // the pattern is sound

	return slices.DeleteFunc(append([]string{path}, found...), func(path string) bool {
		return !isPrivateDir(path)
	})
}

// errNotOwn is why a path is not used: somebody else has made it, as anybody may in /tmp.
var errNotOwn = errors.New("it is not a folder of this user")

// makePrivateDir makes a directory that only this user can enter. It returns errNotOwn if another user, a
// symlink or a file has the path. It checks one open directory, since others could replace the path between
// two checks.
func makePrivateDir(path string) error {
	for {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot make the folder of sockets: %w", err)
		}

		err := closeToOthers(path)
		if !errors.Is(err, fs.ErrNotExist) { // else an agent that ended has removed it as an empty one
			return err
		}
	}
}

// closeToOthers removes all permissions of group and others from a directory of this user.
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
		return fmt.Errorf("cannot close the folder of sockets to others: %w", err)
	}

	return nil
}

// isPrivateDir reports whether a path is a folder that only this user can have made and can enter.
func isPrivateDir(path string) bool {
	dir, st, err := openDir(path)
	if err != nil {
		return false
	}
	defer dir.Close()

	return int(st.Uid) == os.Geteuid() && st.Mode&0o077 == 0
}

// openDir opens a directory. It returns errNotOwn if the path is a symlink or a file, or if this user may
// not open it.
func openDir(path string) (dir *os.File, st unix.Stat_t, err error) {
	dir, err = os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	for _, taken := range []error{unix.EACCES, unix.ELOOP, unix.ENOTDIR} {
		if errors.Is(err, taken) {
			return nil, st, fmt.Errorf("cannot use %q for sockets: %w", path, errNotOwn)
		}
	}

	if err != nil {
		return nil, st, fmt.Errorf("cannot open the folder of sockets: %w", err)
	}

	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		dir.Close()
		return nil, st, fmt.Errorf("cannot look at the folder of sockets %q: %w", path, err)
	}
	return dir, st, nil
}

func socketPath(dir, unit string) string {
	path := filepath.Join(dir, strings.ReplaceAll(unit, "/", "-"))
	if len(path) > maxSocketPath {
		path = filepath.Join(dir, shortHash(unit, 16))
	}
	return path
}

func shortHash(name string, n int) string { return osutil.Digest([]byte(name))[:n] }

// UnitSockets returns the sockets that this user's agents have on this host for units of that name, in all
// environments. For an empty name it returns those of all units, and possibly other sockets. Agents that
// were killed leave sockets behind that nobody serves.
func UnitSockets(unit string) (paths []string) {
	for _, base := range userSockets().list() {
		dirs, _ := filepath.Glob(filepath.Join(base, "*")) // the pattern is sound

		for _, dir := range dirs {
			if unit != "" {
				paths = append(paths, socketPath(dir, unit))
				continue
			}
			sockets, _ := filepath.Glob(filepath.Join(dir, "*"))
			paths = append(paths, sockets...)
		}
	}

	return slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		return err != nil || info.Mode().Type() != fs.ModeSocket
	})
}

// DoFolder makes the folder that `juju do` may use for the sockets of its runs,
// owner-only and short, and returns it. RemoveSockets removes it.
func DoFolder(uuid string) (string, error) { return makeSocketDir(uuid, "do") }

// ProviderFolder makes the folder for the sockets of a provider's process, owner-only and
// short enough for a socket's path, and returns it. RemoveSockets removes it.
func ProviderFolder(uuid string) (string, error) { return makeSocketDir(uuid, "provider") }
