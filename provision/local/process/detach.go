// Package process starts programs that outlive their starter, and finds them again by process id
// and start time, so that a reused id is never mistaken for the process it once named.
//
// It imports leaves of state only. provision/local and multicall import it.
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

// Detached describes a process that is to outlive its starter.
type Detached struct {
	Path  string         // the executable
	Args  []string       // argv, the name first
	Log   string         // where stdout and stderr are appended to; made if missing
	Child childenv.Child // determines what it gets of this process's environment
}

// Detach starts the process in a session of its own, in the root directory, with an empty stdin and its
// output in the log. It does not wait for the process. If the process has ended when Detach returns, that
// is no error, since Alive says so.
func Detach(d Detached) (Identity, error) {
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot open the log of %s: %w", d.Args[0], err)
	}
	defer log.Close()

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

	// Released, not waited for: Alive waits for it once it is a zombie.
	running := cmd.Process
	defer running.Release()

	// Until then it is there, also if it has ended at once.
	stat, err := osutil.ReadProcStat(running.Pid)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot find %s: %w", d.Args[0], err)
	}

	return Identity{PID: running.Pid, Start: stat.Start()}, nil
}

// Stop asks the process to end (SIGTERM) and, when the grace is over, kills it.
// It returns when the process is gone, at once if it is gone already.
func Stop(ctx context.Context, i Identity, grace time.Duration) error {
	if err := sendSignal(i, syscall.SIGTERM); err != nil {
		return err
	}

	gentle, cancel := context.WithTimeout(ctx, grace)
	defer cancel()

	if awaitGone(gentle, i) == nil {
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

func sendSignal(i Identity, s syscall.Signal) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", i.PID, err)
	}

	return nil
}

// awaitGone waits until the process is gone, or ctx is done. It polls, since only a parent gets a notice.
func awaitGone(ctx context.Context, i Identity) error {
	for i.Alive() {
		if err := backoff.Sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("cannot wait for process %d: %w", i.PID, err)
		}
	}
	return nil
}
