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
	// Start starts the unit if it is not running. It returns once the unit was started, although the unit may
	// not answer yet.
	Start(ctx context.Context, unit string) error
	// Restart stops the unit if it is running, and starts it.
	Restart(ctx context.Context, unit string) error
	// Stop stops the unit, and returns once it is no longer running. Until Start or Restart is called, the
	// unit stays stopped, even after a reboot. Stop also succeeds for a unit that never ran or is unknown.
	Stop(ctx context.Context, unit string) error
	// IsActive reports whether the unit is running. A unit that is still starting is not active.
	IsActive(ctx context.Context, unit string) (bool, error)
	// Files returns the contents of the unit's files. It returns nothing if the files are unknown.
	Files(ctx context.Context, unit string) ([]byte, error)
	// RunDetached runs a command as a unit, and returns when the command has ended. The unit continues if the
	// caller ends. RunDetached first waits until no other command is running in the unit. The output goes to
	// the log.
	RunDetached(ctx context.Context, d Detached) error
}

// Detached is a command that outlives the process that runs it.
type Detached struct {
	Name    string // the name of the unit, without ".service"
	Title   string // describes and identifies the command
	Command []string
	Env     []string
	Log     string // the path of the log file
	// Resume makes RunDetached return the failure of an earlier command with the same title instead of
	// running the command. The earlier command may have stopped its caller before the caller saw the failure.
	Resume bool
	// Join makes RunDetached wait for a command with the same title that is already running, and return its
	// result, if the result can be determined.
	Join bool
}

// forEachUnit calls do for each unit, in order, and returns the first error. It repeats a call that exceeds
// the timeout in ctx, as retryHung does.
func forEachUnit(ctx context.Context, units []string, do func(ctx context.Context, unit string) error) error {
	for _, u := range units {
		if err := retryHung(ctx, func(ctx context.Context) error { return do(ctx, u) }); err != nil {
			return err
		}
	}
	return nil
}

// checkActive returns an error unless all units are running.
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

// errNoSystemd is returned by each call of Systemd on a host that does not run systemd.
var errNoSystemd = errors.New("process 1 of this machine is not systemd")

// ServiceCommand is a program with the arguments of systemctl: start, restart, stop or is-active, and a unit.
// It is for hosts without systemd. The program must keep a stopped unit from running until a later call
// starts or restarts the unit.
type ServiceCommand struct{ Path string }

// call runs the command with a verb and a unit. After the command has exited, call waits at most killDelay for
// children that keep the output open, since the program may have started a daemon. If ctx is done before the
// command exits, the children in its process group are also killed.
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

// IsActive reports whether the unit is running.
func (s ServiceCommand) IsActive(ctx context.Context, unit string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := newCommand(ctx, []string{s.Path, "is-active", unit}).Run()
	// As for systemctl, an exit code other than 0 means that the unit is not running. After the timeout, the exit
	// of the killed program has no meaning.
	if _, hasExited := errors.AsType[*exec.ExitError](err); hasExited && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return true, nil
}

// RunDetached runs the command in a new session, and waits until the command ends. It first waits until no other
// command with the same log is running. It returns an error with the end of the log if the command fails. If ctx
// is done while the command runs, RunDetached returns, and the command continues. But if the command has exceeded
// its timeout, RunDetached kills it. RunDetached ignores d.Join and d.Resume, since the result of an earlier
// command is not kept.
func (s ServiceCommand) RunDetached(ctx context.Context, d Detached) error {
	lock, err := awaitLock(ctx, d.Log+".lock")
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", d.Name, err)
	}
	defer lock.Close()

	log, err := os.Create(d.Log)
	if err != nil {
		return err
	}
	defer log.Close()

	// The command has no context, since it continues after ctx is done.
	c := exec.Command(d.Command[0], d.Command[1:]...)
	c.Env = append(childenv.New(os.Environ(), childenv.Program), d.Env...)
	c.Stdout = log
	c.Stderr = log
	// The command inherits the lock, which is held until the command ends.
	c.ExtraFiles = []*os.File{lock}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("cannot run %s: %w", d.Name, err)
	}

	// The channel is buffered, so that the goroutine ends even if RunDetached returns before the command ends.
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()

	select {
	case err = <-ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
		if _, isHung := errors.AsType[hungError](err); !isHung {
			return err
		}
		// An error is ignored, since the command may just have ended.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-ended
	}

	if err != nil {
		return fmt.Errorf("cannot run %s: %w: %s", filepath.Base(d.Command[0]), err, readLogTail(d.Log))
	}

	return nil
}

// awaitLock locks the file at the path. It waits while another process holds the lock, until ctx is done.
func awaitLock(ctx context.Context, path string) (lock *os.File, err error) {
	err = poll(ctx, func() (done bool, err error) {
		lock, err = osutil.TryLockFile(path, os.O_CREATE|os.O_RDWR)
		if errors.Is(err, osutil.ErrLocked) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, nil
	})
	return lock, err
}

// readLogTail returns the end of the log as one line, or "no log exists" if the log cannot be read.
func readLogTail(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return "no log exists"
	}
	return tail(data)
}

// tail returns the end of a program's output as one line, in which each run of white space is one space. It begins
// with a whole line of the output, unless the last line is very long.
func tail(out []byte) string {
	const maxSize = 1500
	out = bytes.TrimSpace(out)
	if len(out) > maxSize {
		out = out[len(out)-maxSize:]
		if _, wholeLines, ok := bytes.Cut(out, []byte("\n")); ok {
			out = wholeLines
		}
	}

	return strings.Join(strings.Fields(string(out)), " ")
}
