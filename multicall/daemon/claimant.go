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

// NewClaimant returns this process as the claimant of the entity that the directory belongs to.
func NewClaimant(folder string) (c state.Claimant, err error) {
	if c.Holder, err = HolderOf(folder); err != nil {
		return c, err
	}
	self, err := process.Self()
	if err != nil {
		return c, fmt.Errorf("cannot tell this process from others: %w", err)
	}

	c.Boot = osutil.BootID()
	c.PIDNamespace = processNamespace()
	c.PID = self.PID
	c.Start = self.Start
	c.Lives = isAliveHere
	return c, nil
}

// MovedTo returns a function that reports whether a former directory of this host has become folder: its
// path leads there, or is gone.
func MovedTo(folder string) func(former string) bool {
	return func(former string) bool {
		leads, err := followLinks(former)
		if err != nil {
			return false
		}
		if _, err := os.Lstat(leads); errors.Is(err, fs.ErrNotExist) {
			return true
		}
		return leads == folder
	}
}

// IsAlive reports whether the holder is a live process that can be seen from here.
func IsAlive(h state.Holder) bool {
	name, _ := os.Hostname()
	return h.PID != 0 && h.Host == hostID(name) && h.Boot == osutil.BootID() &&
		h.PIDNamespace == processNamespace() && isAliveHere(h)
}

// isAliveHere does what IsAlive does, for a process of this boot and PID namespace.
func isAliveHere(h state.Holder) bool { return process.Identity{PID: h.PID, Start: h.Start}.Alive() }

// IsStopped reports whether the holder, which lives and can be seen from here, was stopped: by SIGSTOP, or
// by a debugger.
func IsStopped(h state.Holder) bool {
	if !IsAlive(h) {
		return false
	}
	stat, err := osutil.ReadProcStat(h.PID)
	return err == nil && stat.Start() == h.Start && stat.IsStopped()
}

// HolderOf returns a folder of this host, whether it exists or not, as the holder of a
// claim without a process.
func HolderOf(folder string) (state.Holder, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return state.Holder{}, fmt.Errorf("cannot find the folder %q: %w", folder, err)
	}

	path, err = followLinks(path)
	if err != nil {
		return state.Holder{}, fmt.Errorf("cannot find the folder %q: %w", folder, err)
	}

	name, _ := os.Hostname() // else it has none
	return state.Holder{Host: hostID(name), Folder: path, Name: name}, nil
}

// followLinks does what filepath.EvalSymlinks does, for a path whose last parts may be missing.
func followLinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return real, err
	}
	parent, err := followLinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// hostID returns the machine-id(5), or else the host's name. Neither changes at a reboot.
func hostID(name string) string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		data, _ := os.ReadFile(file)
		if id := strings.TrimSpace(string(data)); len(id) == 32 {
			return id
		}
	}

	return "name:" + name
}

func processNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
