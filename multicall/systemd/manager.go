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

// IsRunning reports whether systemd manages this host (sd_booted(3)).
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

// Manages reports whether systemd is to run machine 0 of the environment: its unit file is
// installed, and enabled.
func Manages(e home.Environment) bool {
	text, err := os.ReadFile(filepath.Join(Dir, MachineUnitName(e)))
	if err != nil || !isMadeFor(string(text), e.Dir) || !IsRunning() {
		return false
	}
	_, err = systemctl("is-enabled", "--quiet", MachineUnitName(e))
	return err == nil
}

// Start has systemd start machine 0's process, and does not wait for it.
func Start(e home.Environment) error {
	_, err := systemctl("start", "--no-block", MachineUnitName(e))
	return err
}

// Stop has systemd end a service of bijou's, and waits for it.
func Stop(service string) error {
	_, err := systemctl("stop", service)
	return err
}

// IsActive reports whether machine 0's service runs, or is about to.
func IsActive(e home.Environment) bool {
	state, _ := systemctl("show", "--property=ActiveState", "--value", MachineUnitName(e))
	return state == "active" || state == "activating" || state == "reloading"
}

// ServiceOf returns the service of bijou's whose control group the process is in; "" if none.
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

func systemctl(args ...string) (string, error) {
	out, err := exec.Command("systemctl", append([]string{"--no-ask-password"}, args...)...).CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return said, fmt.Errorf("cannot run systemctl %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return said, nil
}
