package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/provision/local/process"
	"bijou/state"
	"bijou/state/osutil"
)

// NewClaimant returns this process as the claimant of the entity to which the directory belongs. It does not set
// Moved, so a directory that was moved counts as a different place.
func NewClaimant(folder string) (c state.Claimant, err error) {
	if c.Holder, err = HolderOf(folder); err != nil {
		return c, err
	}
	self, err := process.Self()
	if err != nil {
		return c, fmt.Errorf("cannot identify this process: %w", err)
	}

	c.Boot = osutil.BootID()
	c.PIDNamespace = processNamespace()
	c.PID = self.PID
	c.Start = self.Start
	c.Lives = isAliveHere
	return c, nil
}

// MovedTo returns a function that reports whether a former directory on this host was moved to folder. The
// function assumes that the directory was moved if the former path now leads to folder, or no longer exists. It
// returns false if it cannot follow the former path.
func MovedTo(folder string) func(former string) bool {
	return func(former string) bool {
		target, err := followLinks(former)
		if err != nil {
			return false
		}
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			return true
		}
		return target == folder
	}
}

// IsAlive reports whether the holder is a running process that this process can see.
func IsAlive(h state.Holder) bool {
	if h.PID == 0 {
		return false
	}

	name, _ := os.Hostname() // empty if this fails, as in HolderOf
	isOfThisBoot := h.Host == hostID(name) && h.Boot == osutil.BootID()
	return isOfThisBoot && h.PIDNamespace == processNamespace() && isAliveHere(h)
}

// isAliveHere reports whether the holder's process is running. The process must belong to this boot and PID namespace.
func isAliveHere(h state.Holder) bool { return process.Identity{PID: h.PID, Start: h.Start}.Alive() }

// IsStopped reports whether the holder is a process that this process can see, and that SIGSTOP or a debugger has
// stopped.
func IsStopped(h state.Holder) bool {
	if !IsAlive(h) {
		return false
	}
	// Since IsAlive, a different process may have got the PID, so compare the start again.
	stat, err := osutil.ReadProcStat(h.PID)
	return err == nil && stat.Start() == h.Start && stat.IsStopped()
}

// HolderOf returns the holder of a claim for a directory on this host. It leaves the fields about a process empty. The
// directory need not exist.
func HolderOf(folder string) (state.Holder, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return state.Holder{}, fmt.Errorf("cannot find the directory %q: %w", folder, err)
	}

	path, err = followLinks(path)
	if err != nil {
		return state.Holder{}, fmt.Errorf("cannot find the directory %q: %w", folder, err)
	}

	// If this fails, the name is empty.
	name, _ := os.Hostname()
	return state.Holder{Host: hostID(name), Folder: path, Name: name}, nil
}

// followLinks is like [filepath.EvalSymlinks], but the last parts of the path may be missing.
func followLinks(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	isMissing := errors.Is(err, fs.ErrNotExist)
	if !isMissing || path == "/" {
		return resolved, err
	}

	parent, err := followLinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// hostID returns the machine-id(5) or, if there is none, "name:" and the host's name. Neither changes at a reboot.
func hostID(name string) string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		data, _ := os.ReadFile(file) // a file that cannot be read has no id
		// An id has 32 digits. While a system is being set up, the file can be empty or have a different word.
		if id := strings.TrimSpace(string(data)); len(id) == 32 {
			return id
		}
	}

	return "name:" + name
}

// processNamespace returns the PID namespace of this process, or "" if the kernel has no namespaces.
func processNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
