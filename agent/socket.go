package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/state/digest"
	"bijou/state/wrap"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the size of a unix socket's address, in bytes.
const maxSocketPath = 107

// makeSocketDir makes the folder of one machine's sockets: owner-only, in a short place,
// under a short name.
func makeSocketDir(uuid, machineDir string) (string, error) {
	dir := socketDirPath(uuid, machineDir)
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := makePrivateDir(path); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func socketDirPath(uuid, machineDir string) string {
	return filepath.Join(socketBase(os.Geteuid()), shortHash(uuid, 8)+"-"+shortHash(machineDir, 8))
}

// RemoveSockets removes the folders of all sockets of an environment's machines on this
// host, which agents that were killed leave behind. None of its agents may run any more.
func RemoveSockets(uuid string) error {
	bases := []string{socketBase(os.Geteuid())}
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

// socketBase returns a folder that lasts as long as agents do: XDG_RUNTIME_DIR does not,
// since logind removes it at the last logout unless the user lingers.
func socketBase(uid int) string {
	if uid == 0 {
		return "/run/bijou"
	}
	return "/tmp/bijou-" + strconv.Itoa(uid)
}

// makePrivateDir refuses a folder that somebody else has made, as anybody may in /tmp.
func makePrivateDir(path string) error {
	var st unix.Stat_t
	for gone := true; gone; { // an agent that ends removes it, if nobody's socket is in it yet
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("cannot make the folder of sockets: %w", err)
		}
		err := unix.Lstat(path, &st)
		if gone = errors.Is(err, unix.ENOENT); err != nil && !gone {
			return fmt.Errorf("cannot look at the folder of sockets %q: %w", path, err)
		}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use %q for sockets: it is not a folder of this user", path)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	return wrap.Error(os.Chmod(path, 0o700), "cannot close the folder of sockets to others")
}

func socketPath(dir, unit string) string {
	path := filepath.Join(dir, strings.ReplaceAll(unit, "/", "-"))
	if len(path) > maxSocketPath {
		path = filepath.Join(dir, shortHash(unit, 16))
	}
	return path
}

func shortHash(name string, n int) string { return digest.Of([]byte(name))[:n] }

// DoFolder makes the folder that `juju do` may use for the sockets of its runs,
// owner-only and short, and returns it. RemoveSockets removes it.
func DoFolder(uuid string) (string, error) { return makeSocketDir(uuid, "do") }

// ProviderFolder makes the folder for the sockets of a provider's process, owner-only and
// short enough for a socket's path, and returns it. RemoveSockets removes it.
func ProviderFolder(uuid string) (string, error) { return makeSocketDir(uuid, "provider") }
