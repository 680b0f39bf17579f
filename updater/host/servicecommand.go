package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"bijou/state/filelock"
)

// ServiceCommand is a program that is called like systemctl: start, restart, stop or
// is-active, and a unit. It is used where systemd is not, and has to keep what was
// stopped from starting by itself.
type ServiceCommand struct{ Path string }

// call does not wait for children of the program that hold its output: it may have
// started a daemon. They are killed with it when it is cancelled.
func (s ServiceCommand) call(ctx context.Context, verb, unit string) error {
	if err := runCommand(ctx, []string{s.Path, verb, unit}); err != nil {
		return fmt.Errorf("cannot %s %s: %w", verb, unit, err)
	}
	return nil
}

// Start starts the unit.
func (s ServiceCommand) Start(ctx context.Context, unit string) error {
	return s.call(ctx, "start", unit)
}

// Restart restarts the unit.
func (s ServiceCommand) Restart(ctx context.Context, unit string) error {
	return s.call(ctx, "restart", unit)
}

// Stop stops the unit.
func (s ServiceCommand) Stop(ctx context.Context, unit string) error {
	return s.call(ctx, "stop", unit)
}

// IsActive reports whether the unit runs.
func (s ServiceCommand) IsActive(ctx context.Context, unit string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := newCommand(ctx, []string{s.Path, "is-active", unit}).Run()
	if _, said := errors.AsType[*exec.ExitError](err); said && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// RunDetached runs the command in a session of its own. It waits for one of the same name
// that runs, and then runs it again: it can be repeated.
func (s ServiceCommand) RunDetached(ctx context.Context, d Detached) error {
	var lock *os.File
	free := func() (_ bool, err error) {
		lock, err = filelock.TryLock(d.Log+".lock", os.O_CREATE|os.O_RDWR)
		if errors.Is(err, filelock.ErrLocked) {
			return false, nil
		}
		return err == nil, err
	}
	if err := poll(ctx, free); err != nil {
		return fmt.Errorf("cannot run %s: %w", d.Name, err)
	}
	defer lock.Close()
	log, err := os.Create(d.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(d.Command[0], d.Command[1:]...)
	c.Env = append(os.Environ(), d.Env...)
	c.Stdout, c.Stderr = log, log
	c.ExtraFiles = []*os.File{lock} // held as long as it runs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("cannot run %s: %w", d.Name, err)
	}
	ended := make(chan error, 1) // the command outlives a caller that is told to end
	go func() { ended <- c.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
		if _, hung := errors.AsType[hungError](err); !hung {
			return err
		}
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	if err != nil {
		return fmt.Errorf("cannot run %s: %w: %s", filepath.Base(d.Command[0]), err, readLogTail(d.Log))
	}
	return nil
}

func readLogTail(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return "it has left no log"
	}
	return tail(data)
}

// tail returns the end of a program's output in one line: whole lines, unless they are
// endless.
func tail(out []byte) string {
	const enough = 1500
	out = bytes.TrimSpace(out)
	if len(out) > enough {
		out = out[len(out)-enough:]
		if _, whole, ok := bytes.Cut(out, []byte("\n")); ok {
			out = whole
		}
	}
	return strings.Join(strings.Fields(string(out)), " ")
}
