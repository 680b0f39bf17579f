// Package process starts programs that outlive the process that starts them. It identifies a process by its
// PID and start time, so that a different process that reuses the PID is not mistaken for it.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"bijou/state/backoff"
	"bijou/state/childenv"
	"bijou/state/osutil"
)

// Detached describes a process that must outlive the process that starts it.
type Detached struct {
	Path  string         // the executable
	Args  []string       // argv, beginning with the name
	Log   string         // stdout and stderr are appended to this file, which is created if it is missing
	Child childenv.Child // decides which of this process's environment variables the new process gets
}

// Detach starts the process in a new session, in the root directory, with an empty stdin and its output in
// the log. It does not wait for the process. It returns no error if the process has already exited, which
// [Identity.Alive] reports.
func Detach(d Detached) (Identity, error) {
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot open the log of %s: %w", d.Args[0], err)
	}
	defer log.Close()

	// RetryBusy may call the function several times, but an exec.Cmd cannot be started twice.
	var cmd *exec.Cmd
	err = osutil.RetryBusy(time.Second, func() error {
		cmd = &exec.Cmd{
			Path:        d.Path,
			Args:        d.Args,
			Dir:         "/",
			Env:         childenv.New(os.Environ(), d.Child),
			Stdout:      log,
			Stderr:      log,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		}
		return cmd.Start()
	})
	if err != nil {
		return Identity{}, fmt.Errorf("cannot start %s: %w", d.Args[0], err)
	}

	running := cmd.Process
	defer running.Release()

	// Alive reaps the process after it has exited. Until then /proc has its entry, so its start time can be read.
	stat, err := osutil.ReadProcStat(running.Pid)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot find %s: %w", d.Args[0], err)
	}

	return Identity{PID: running.Pid, Start: stat.Start()}, nil
}

// Stop sends SIGTERM to the process, and SIGKILL if the process has not exited within the grace period. It
// blocks until the process is gone. It returns an error if ctx is done first.
func Stop(ctx context.Context, i Identity, grace time.Duration) error {
	if err := sendSignal(i, syscall.SIGTERM); err != nil {
		return err
	}

	graceCtx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()

	if awaitGone(graceCtx, i) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, ctx.Err())
	}
	if err := sendSignal(i, syscall.SIGKILL); err != nil {
		return err
	}

	return awaitGone(ctx, i)
}

// sendSignal sends a signal that stops the process. It returns nil if the process is already gone. It never
// signals a later process with the same PID, except one that gets the PID within this call.
func sendSignal(i Identity, s syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, err)
	}

	return nil
}

// awaitGone waits until the process is gone, and returns an error if ctx is done first. It polls, since the
// kernel notifies only the parent of a process.
func awaitGone(ctx context.Context, i Identity) error {
	for i.Alive() {
		if err := backoff.Sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("cannot wait for process %d: %w", i.PID, err)
		}
	}
	return nil
}
