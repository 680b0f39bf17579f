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

// newClaimant is this process as one that works in the folder, which is there.
func newClaimant(folder string) (c state.Claimant, err error) {
	if c.Holder, err = placeOf(folder); err != nil {
		return c, err
	}
	self, err := process.Self()
	if err != nil {
		return c, fmt.Errorf("cannot tell this process from others: %w", err)
	}
	c.Boot, c.PIDs, c.PID, c.Start = bootID(), processNamespace(), self.PID, self.Start
	c.Lives = livesHere
	return c, nil
}

// lives reports whether the holder is a process that can be seen from here, and lives.
func lives(h state.Holder) bool {
	name, _ := os.Hostname()
	return h.PID != 0 && h.Host == hostID(name) && h.Boot == bootID() && h.PIDs == processNamespace() && livesHere(h)
}

// livesHere is lives of a process of this boot and namespace.
func livesHere(h state.Holder) bool { return process.Identity{PID: h.PID, Start: h.Start}.Alive() }

// placeOf is a folder of this host, be it there or not, without a process.
func placeOf(folder string) (state.Holder, error) {
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

// followLinks is filepath.EvalSymlinks of a path whose last parts may be missing.
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
	here, err := placeOf(e.MachineDir("0"))
	if err != nil {
		return err
	}
	return hintMoved(look(ctx, s, func(v *state.View) error { return v.CheckPlace("0", here) }))
}

// hostID is the host's machine-id(5), else its name: no reboot changes it.
func hostID(name string) string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		data, _ := os.ReadFile(file)
		if id := strings.TrimSpace(string(data)); len(id) == 32 {
			return id
		}
	}
	return "name:" + name
}

// bootID names this boot of the kernel, or of the container.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// processNamespace names the namespace that process ids here belong to.
func processNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}

// hintMoved says what to do about a claim that another place holds.
func hintMoved(err error) error {
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}
	return console.Hint(err, `if that one is gone, or its folder was moved here: "juju start --moved"; it is never to run beside this one`)
}
