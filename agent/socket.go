package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSocket is what a unix socket's address has room for, in bytes.
const maxSocket = 107

// hashed is how many digits of its hash name a unit whose own name is too long.
const hashed = 16

// socketDir makes the folder of the sockets of one machine of an environment:
// owner-only, in a short place, under a short name. Making it again is no error.
func socketDir(uuid, machineDir string) (string, error) {
	dir := socketDirName(uuid, machineDir)
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := ownDir(path); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// socketDirName names it.
func socketDirName(uuid, machineDir string) string {
	return filepath.Join(socketBase(os.Geteuid()), short(uuid, 8)+"-"+short(machineDir, 8))
}

// RemoveSockets removes the folders of all sockets of an environment's machines
// on this host, which agents that were killed leave behind. None of its agents
// may run any more.
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
			if !strings.HasPrefix(e.Name(), short(uuid, 8)+"-") {
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

// socketBase is where sockets of that user lie, as long as agents live: not below
// XDG_RUNTIME_DIR, which logind removes at the last logout unless the user lingers.
func socketBase(uid int) string {
	if uid == 0 {
		return "/run/bijou"
	}
	return "/tmp/bijou-" + strconv.Itoa(uid)
}

// ownDir makes a folder that only we may enter. In /tmp anybody may have made
// one before us.
func ownDir(path string) error {
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
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("cannot close the folder of sockets to others: %w", err)
	}
	return nil
}

// socketPath is the socket of a unit; a long name is shortened to its hash.
func socketPath(dir, unit string) string {
	path := filepath.Join(dir, strings.ReplaceAll(unit, "/", "-"))
	if len(path) > maxSocket {
		path = filepath.Join(dir, short(unit, hashed))
	}
	return path
}

// short is a name made of so many hexadecimal digits.
func short(name string, n int) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:n]
}
