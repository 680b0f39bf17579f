package multicall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/provision/local/process"
	"bijou/state"
)

func newClaimant(folder string) (c state.Claimant, err error) {
	if c.Holder, err = holderOf(folder); err != nil {
		return c, err
	}
	self, err := process.Self()
	if err != nil {
		return c, fmt.Errorf("cannot tell this process from others: %w", err)
	}
	c.Boot, c.PIDs, c.PID, c.Start = bootID(), processNamespace(), self.PID, self.Start
	c.Lives = isAliveHere
	return c, nil
}

// isAlive reports whether the holder is a live process that can be seen from here.
func isAlive(h state.Holder) bool {
	name, _ := os.Hostname()
	return h.PID != 0 && h.Host == hostID(name) && h.Boot == bootID() && h.PIDs == processNamespace() && isAliveHere(h)
}

// isAliveHere is isAlive for a process of this boot and namespace.
func isAliveHere(h state.Holder) bool { return process.Identity{PID: h.PID, Start: h.Start}.Alive() }

// holderOf returns a folder of this host, whether it exists or not, without a process.
func holderOf(folder string) (state.Holder, error) {
	path, err := filepath.Abs(folder)
	if err == nil {
		path, err = followLinks(path)
	}
	if err != nil {
		return state.Holder{}, fmt.Errorf("cannot find the folder %q: %w", folder, err)
	}
	name, _ := os.Hostname() // else it has none
	return state.Holder{Host: hostID(name), Folder: path, Name: name}, nil
}

// followLinks is filepath.EvalSymlinks for a path whose last parts may be missing.
func followLinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return real, err
	}
	parent, err := followLinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// refuseCopy refuses an environment in a file whose machine 0 is another folder's.
func refuseCopy(ctx context.Context, s *state.State, e home.Environment) error {
	if !strings.HasPrefix(e.State, "sqlite:") {
		return nil
	}
	here, err := holderOf(e.MachineDir("0"))
	if err != nil {
		return err
	}
	return withMovedHint(viewRetrying(ctx, s, func(v *state.View) error { return v.CheckPlace("0", here) }))
}

// hostID is the machine-id(5), else the host's name: neither changes at a reboot.
func hostID(name string) string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		data, _ := os.ReadFile(file)
		if id := strings.TrimSpace(string(data)); len(id) == 32 {
			return id
		}
	}
	return "name:" + name
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

func processNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}

func withMovedHint(err error) error {
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}
	return console.Hint(err, `if that one is gone, or its folder was moved here: "juju start --moved"; it is never to run beside this one`)
}
