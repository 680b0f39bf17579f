package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"bijou/multicall/home"
)

// IsRunning says if systemd manages this host (sd_booted(3)).
func IsRunning() bool {
	_, err := os.Lstat("/run/systemd/system")
	return err == nil
}

// Reload has systemd read its unit files again, where it runs.
func Reload() error {
	if !IsRunning() {
		return nil
	}
	_, err := systemctl("daemon-reload")
	return err
}

// Manages says if systemd is to run machine 0 of the environment: its unit file is
// installed, and enabled.
func Manages(e home.Environment) bool {
	text, err := os.ReadFile(filepath.Join(Dir, MachineUnit(e)))
	if err != nil || !isMadeFor(string(text), e.Dir) || !IsRunning() {
		return false
	}
	_, err = systemctl("is-enabled", "--quiet", MachineUnit(e))
	return err == nil
}

// Start has systemd start machine 0's process, and does not wait for it.
func Start(e home.Environment) error {
	_, err := systemctl("start", "--no-block", MachineUnit(e))
	return err
}

// Stop has systemd end a service of ours, and waits for it.
func Stop(service string) error {
	_, err := systemctl("stop", service)
	return err
}

// IsActive says if machine 0's service runs, or is about to.
func IsActive(e home.Environment) bool {
	state, _ := systemctl("show", "--property=ActiveState", "--value", MachineUnit(e))
	return state == "active" || state == "activating" || state == "reloading"
}

// ServiceOf is the service of ours that the process belongs to as its main one's
// kin, by its control group; "" if it is in none.
func ServiceOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		name := path.Base(strings.TrimSpace(line))
		if strings.HasPrefix(name, "bijou-") && strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// systemctl runs systemctl and returns what it prints.
func systemctl(args ...string) (string, error) {
	out, err := exec.Command("systemctl", append([]string{"--no-ask-password"}, args...)...).CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return said, fmt.Errorf("cannot run systemctl %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return said, nil
}
