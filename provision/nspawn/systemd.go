package nspawn

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"bijou/state/backoff"
	"bijou/state/childenv"
)

// systemdManager is the manager on a host with systemd. Each container is a transient service, which
// systemctl and journalctl can show.
type systemdManager struct{}

// unitName returns the name of the container's transient service.
func unitName(id string) string { return "bijou-" + id + ".service" }

// start starts the container as a systemd unit. It returns an error if a unit of the same name exists. systemd
// enforces both limits, so unlimited is nil. It does not use c.lock, since systemd, and not this process, starts
// the shell.
func (systemdManager) start(ctx context.Context, id string, c command) (unlimited []string, err error) {
	// With STAY, boot.sh replaces itself with the container, so that the unit lasts as long as the container.
	args := []string{
		"--quiet", "--collect", "--unit=" + unitName(id), "--slice=machine.slice", "--setenv=STAY=yes",
		"--description=bijou: container " + id, "--property=Delegate=yes", "--property=KillMode=mixed",
		"--property=TasksMax=infinity", "--property=StandardOutput=append:" +
			c.log, "--property=StandardError=append:" + c.log,
	}

	if c.limits.Mem > 0 {
		args = append(args, fmt.Sprintf("--property=MemoryMax=%dM", c.limits.Mem))
	}
	if c.limits.CPUCores > 0 {
		// 100 % is one processor.
		args = append(args, fmt.Sprintf("--property=CPUQuota=%d00%%", c.limits.CPUCores))
	}

	args = append(args, "--")
	for _, word := range slices.Concat([]string{"/bin/sh", "-c", bootScript, "boot.sh", "--"}, c.args) {
		// systemd expands variables in the command, but not in properties, unless their dollar signs are escaped.
		args = append(args, strings.ReplaceAll(word, "$", "$$"))
	}

	_, err = runProgram(ctx, "systemd-run", args...)
	return nil, err
}

// isRunning reports whether the container's unit can have processes.
func (systemdManager) isRunning(id string) (bool, error) {
	activeState, err := runProgram(context.Background(), "systemctl", "show", "--property=ActiveState", "--value",
		unitName(id))
	return slices.Contains([]string{"active", "activating", "deactivating", "reloading"}, activeState), err
}

// kill kills all processes of the container's unit, and waits until the unit has ended.
func (m systemdManager) kill(ctx context.Context, id string) error {
	runs, err := m.isRunning(id)
	if err != nil {
		return err
	}
	if !runs {
		return nil
	}
	// An error is ignored, since the unit may already have ended.
	_, _ = runProgram(ctx, "systemctl", "kill", "--signal=SIGKILL", unitName(id))

	for {
		runs, err = m.isRunning(id)
		if err != nil {
			return err
		}
		if !runs {
			return nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return fmt.Errorf("cannot end %s: %w", unitName(id), err)
		}
	}
}

// close does nothing, since systemd removes units that have ended.
func (systemdManager) close() error { return nil }

// runProgram runs the program and returns its stdout, without surrounding space. If the program fails, it also
// returns an error with the program's stderr and stdout.
func runProgram(ctx context.Context, program string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = childenv.New(os.Environ(), childenv.Program)
	var stdout, stderr bytes.Buffer
	c.Stdout = &stdout
	c.Stderr = &stderr

	err := c.Run()
	output := strings.TrimSpace(stdout.String())
	if err != nil {
		return output, fmt.Errorf("cannot run %s: %w: %s", program, err, strings.TrimSpace(stderr.String()+output))
	}

	return output, nil
}
