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

	"bijou/state/childenv"
	"bijou/state/osutil"
)

// Services controls the units of components. Each call is idempotent.
type Services interface {
	// Start starts the unit, and returns when it has been started: it may not answer
	// yet. One that runs is left alone.
	Start(ctx context.Context, unit string) error
	// Restart stops the unit, if it runs, and starts it.
	Restart(ctx context.Context, unit string) error
	// Stop returns when the unit does not run any more, and keeps it from being
	// started by anything but Start and Restart, also at the machine's next boot.
	// One that never ran, or is not known, is stopped.
	Stop(ctx context.Context, unit string) error
	// IsActive reports whether the unit runs. One that is about to is not active yet.
	IsActive(ctx context.Context, unit string) (bool, error)
	// Files returns the contents of the unit's files; empty if they are not known.
	Files(ctx context.Context, unit string) ([]byte, error)
	// RunDetached runs a command as a unit of that name, which goes on whatever
	// becomes of the caller, and returns when it has ended. It first waits for one of
	// that name that runs already. The output goes to the log.
	RunDetached(ctx context.Context, d Detached) error
}

// Detached is a command that outlives the process that runs it.
type Detached struct {
	Name    string // the unit's, without ".service"
	Title   string // what it does; another title is another command
	Command []string
	Env     []string
	Log     string // file
	// Resume takes the failure of an earlier command of the same title for its own. That command may have
	// ended its caller before the caller could see the failure.
	Resume bool
	// Join waits for a command of the same title that runs already, and takes its result for its own, if the
	// result can be known.
	Join bool
}

func forEachUnit(ctx context.Context, units []string, do func(ctx context.Context, unit string) error) error {
	for _, u := range units {
		if err := retryHung(ctx, func(ctx context.Context) error { return do(ctx, u) }); err != nil {
			return err
		}
	}
	return nil
}

// checkActive returns an error unless all units run.
func (h *Host) checkActive(ctx context.Context, units []string) error {
	for _, u := range units {
		runs, err := h.services.IsActive(ctx, u)
		if err != nil {
			return err
		}
		if !runs {
			return fmt.Errorf("%s does not run", u)
		}
	}

	return nil
}

var errNoSystemd = errors.New("process 1 of this machine is not systemd")

// ServiceCommand is a program that is called like systemctl: start, restart, stop or
// is-active, and a unit. It is used where systemd is not, and has to keep what was
// stopped from starting by itself.
type ServiceCommand struct{ Path string }

// call runs the command for a verb and a unit. It does not wait for children that hold the output, since the
// program may have started a daemon. A cancelled call kills them, too.
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

// RunDetached runs the command in a session of its own. It waits for a running command of the same name,
// and then runs its own, so that it can be repeated.
func (s ServiceCommand) RunDetached(ctx context.Context, d Detached) error {
	var lock *os.File
	free := func() (_ bool, err error) {
		lock, err = osutil.TryLockFile(d.Log+".lock", os.O_CREATE|os.O_RDWR)
		if errors.Is(err, osutil.ErrLocked) {
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
	c.Env = append(childenv.New(os.Environ(), childenv.Program), d.Env...)
	c.Stdout = log
	c.Stderr = log
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

// tail returns the end of a program's output in one line: whole lines, unless they are endless.
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
