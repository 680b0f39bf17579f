package juju

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backoff"
)

const (
	// startTimeout limits the start of a process, which usually takes a fraction of a second.
	startTimeout = time.Minute
	// haltTimeout is how long a process may take to end before it is killed.
	haltTimeout = 30 * time.Second
	// processPollInterval is short, since no event reports that a process does not start up, or has ended.
	processPollInterval = 20 * time.Millisecond
)

// startBackground starts the environment's process, and waits until the process has announced itself in the
// store. It starts nothing if it cannot open the store. If the start fails, the error also quotes the end of
// machine 0's log, as far as that is new.
func (o *operator) startBackground(e home.Environment) error {
	return o.openState(e, func(s *state.State) error {
		logStart := logSize(e)
		alive, err := o.parts.Processes.Start(e)
		if err != nil {
			tail := readLogTail(e, logStart)
			return errors.Join(err, tail)
		}

		pid, err := o.awaitBackground(s, e, alive)
		if err != nil {
			tail := readLogTail(e, logStart)
			return errors.Join(err, tail)
		}

		log := e.LogFile("0")
		if service := o.parts.Services.Of(pid); service != "" {
			log = "the journal: journalctl -u " + service
		}
		o.note("  machine 0 is running, %s; its log: %s", o.describeProcess(pid), log)
		return nil
	})
}

// describeProcess returns a clause with the id of the process and, if there is one, its systemd service.
func (o *operator) describeProcess(pid int) string {
	if service := o.parts.Services.Of(pid); service != "" {
		return fmt.Sprintf("with process id %d, as systemd's %s", pid, service)
	}
	return fmt.Sprintf("with process id %d", pid)
}

// awaitOther returns the id of the process that runs machine 0, or 0 if no process runs it. If a process is
// about to run the machine, to switch to a different binary, or to end, awaitOther waits for that process. A
// second process would be refused until then. awaitOther returns an error if it has to wait longer than
// startTimeout, or if the operator interrupts the wait.
func (o *operator) awaitOther(e home.Environment) (pid int, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, startTimeout)
	defer cancel()

	for {
		pid, err = o.parts.Processes.Running(e.MachineDir("0"))
		if err != nil {
			return pid, err
		}
		if pid != 0 {
			return pid, nil
		}

		// other is a process that does not run the machine yet, or no longer runs it.
		other, err := o.parts.Processes.Process(e.MachineDir("0"))
		if err != nil {
			return 0, err
		}
		if other == 0 {
			return 0, nil
		}

		if backoff.Sleep(ctx, processPollInterval) == nil {
			continue
		}
		// Sleep fails after startTimeout, or because the operator has interrupted the command.
		if err := o.ctx.Err(); err != nil {
			return 0, err
		}

		return 0, console.Hint(
			fmt.Errorf("process %d has locked the directory of machine 0, but does not run the machine", other),
			fmt.Sprintf("to end it: kill -9 %d", other),
		)
	}
}

// awaitBackground waits until the environment's process has announced machine 0 in the store, and returns the
// process's id. alive reports whether the process that this command has started is still running.
// awaitBackground returns an error if the process ends, or is not ready within startTimeout.
func (o *operator) awaitBackground(s *state.State, e home.Environment, alive func() bool) (pid int, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, startTimeout)
	defer cancel()

	for {
		// Call alive before Running: if the process ends in between, the next round notices it.
		lives := alive()
		if pid, err = o.parts.Processes.Running(e.MachineDir("0")); err != nil {
			return 0, err
		}
		isAnnounced, err := state.Read(ctx, s, func(v *state.View) (bool, error) {
			return v.IsPresent(state.MachineAgent("0"))
		})

		// Once ctx has ended, the error of Read only says so.
		if ctx.Err() != nil {
			return 0, o.explainStart(e, pid, lives)
		}
		if err != nil {
			return pid, err
		}
		if isAnnounced && pid != 0 {
			return pid, nil
		}

		if !lives && pid == 0 {
			// Another program may have started a process, which is still starting up.
			other, err := o.parts.Processes.Process(e.MachineDir("0"))
			if err != nil {
				return 0, err
			}
			if other == 0 {
				return 0, errors.New("the background process has ended")
			}
		}

		if err := backoff.Sleep(ctx, processPollInterval); err != nil {
			return 0, o.explainStart(e, pid, lives)
		}
	}
}

// explainStart returns an error that says how far the start of the background process had come when the wait
// for it ended. If the operator has interrupted the wait, the error says only that. pid is the id of the process
// that runs machine 0, or 0. lives is whether the started process is still running. The process may still become
// ready, as on a busy host.
func (o *operator) explainStart(e home.Environment, pid int, lives bool) error {
	if err := o.ctx.Err(); err != nil {
		return fmt.Errorf("stopped waiting for the background process: %w", err)
	}

	how := "the process has not yet locked the machine's directory"
	if pid != 0 {
		how = fmt.Sprintf("process %d runs, but has not yet announced machine 0 in the state", pid)
	}
	err := fmt.Errorf("the background process was not ready within %s: %s", startTimeout, how)
	if pid == 0 && !lives {
		// The started process has ended, so the hint would be wrong.
		return err
	}

	return console.Hint(err,
		"it may still start: juju status -e "+e.Name+" shows when machine 0 runs, and juju start waits for machine 0")
}

// logSize returns the size in bytes of machine 0's log, or 0 if the size cannot be read, as without a log.
func logSize(e home.Environment) int {
	info, err := os.Stat(e.LogFile("0"))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// readLogTail returns an error that contains machine 0's log from the offset start, at most its last 2 KiB. It
// returns nil if the log has nothing after start, or cannot be read.
func readLogTail(e home.Environment, start int) error {
	text, err := os.ReadFile(e.LogFile("0"))
	if err != nil || len(text) <= start {
		return nil
	}

	tail := text[max(start, len(text)-2048):]
	return fmt.Errorf("the log %s ends:\n%s", e.LogFile("0"), strings.TrimSpace(string(tail)))
}
