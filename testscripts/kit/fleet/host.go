package fleet

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bijou/testscripts/kit/await"
)

//go:embed boot.sh
var bootScript string

// bootLimit is ten times the boot time on a busy machine.
const bootLimit = 90 * time.Second

// Host is one host of a fleet.
type Host struct {
	Name    string // also its host name
	Address string // in the fleet's network, /24

	fleet *Fleet
	boot  *exec.Cmd     // nil if the host was never started
	ended chan struct{} // closed when the host is off
}

// Start boots the host from its existing disk. It returns once the host's systemd has started
// everything.
func (h *Host) Start() error {
	log, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot boot %s: %w", h.Name, err)
	}
	defer log.Close()
	args := []string{"bash", "-c", bootScript, "boot.sh", h.dir(), h.fleet.tree, h.Name, h.Address}
	h.boot = h.fleet.within(append(args, h.fleet.groups...)...)
	h.boot.Stdout, h.boot.Stderr = log, log
	if err := h.boot.Start(); err != nil {
		return fmt.Errorf("cannot boot %s: %w", h.Name, err)
	}
	h.ended = make(chan struct{})
	// The fleet's close waits for this goroutine.
	go func(boot *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		// Wait returns an error after a power cut, which is not a failure of the test.
		_ = boot.Wait()
	}(h.boot, h.ended)
	return h.awaitUp()
}

// awaitUp waits until the host is up, or has ended.
func (h *Host) awaitUp() error {
	ended, said := false, ""
	_, came := await.Try(await.Poll{Limit: bootLimit, Pause: 50 * time.Millisecond}, func() bool {
		select {
		case <-h.ended:
			ended = true
		default:
			said, _ = h.Exec("systemctl", "is-system-running")
		}
		return ended || said == "running\n" || said == "degraded\n"
	})
	switch {
	case ended:
		return fmt.Errorf("%s has ended at once: %s", h.Name, h.console())
	case !came:
		return fmt.Errorf("%s does not come up: %s%s", h.Name, said, h.console())
	}
	return nil
}

// console returns the end of the host's console output.
func (h *Host) console() string {
	data, _ := os.ReadFile(h.log())
	return string(data[max(0, len(data)-2000):])
}

func (h *Host) dir() string { return filepath.Join(h.fleet.dir, h.Name) }
func (h *Host) log() string { return h.dir() + ".log" }

// init returns the process id of the host's first process, as this machine sees it.
func (h *Host) init() (int, error) {
	if h.boot == nil {
		return 0, errors.New("it was never started")
	}
	// The host's first process is below nsenter and systemd-nspawn.
	return descendant(h.boot.Process.Pid, 2)
}

// Stop shuts the host down in an orderly way, and returns when it is off.
func (h *Host) Stop() error {
	// This is SIGRTMIN+4; see systemd(1).
	const poweroff = syscall.Signal(34 + 4)
	return h.end(poweroff)
}

// PowerCut ends all processes on the host at once. Written data survives, synced or not, because the
// machine's kernel keeps running.
func (h *Host) PowerCut() error { return h.end(syscall.SIGKILL) }

func (h *Host) end(s syscall.Signal) error {
	pid, err := h.init()
	if err == nil {
		err = syscall.Kill(pid, s)
	}
	if err != nil {
		return fmt.Errorf("cannot end %s: %w", h.Name, err)
	}
	select {
	case <-h.ended:
		return nil
	case <-time.After(bootLimit):
		return fmt.Errorf("cannot end %s: it goes on: %s", h.Name, h.console())
	}
}

// Command returns a command to run on the host. The caller starts it. It runs as root, without this process's
// environment.
func (h *Host) Command(args ...string) (*exec.Cmd, error) {
	pid, err := h.init()
	if err != nil {
		return nil, fmt.Errorf("cannot run %q on %s: %w", args, h.Name, err)
	}
	c := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(pid), "-a", "--"}, args...)...)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
	return c, nil
}

// Exec runs a command on the host and returns its stdout and stderr.
func (h *Host) Exec(args ...string) (string, error) {
	c, err := h.Command(args...)
	if err != nil {
		return "", err
	}
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cannot run %q on %s: %w: %s", args, h.Name, err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Path returns this machine's path to a file of the host. The path is valid while the host runs.
func (h *Host) Path(path string) (string, error) {
	pid, err := h.init()
	if err != nil {
		return "", fmt.Errorf("cannot reach %q on %s: %w", path, h.Name, err)
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root", path), nil
}

// Link cuts or restores the host's network. The network is up after a start.
func (h *Host) Link(up bool) error {
	to := "down"
	if up {
		to = "up"
	}
	if out, err := h.fleet.within("ip", "link", "set", "vb-"+h.Name, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot set the link of %s %s: %w: %s", h.Name, to, err, out)
	}
	return nil
}
