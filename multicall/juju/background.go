package juju

import (
	"cmp"
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
// store. It starts nothing if it cannot open the store.
func (o *operator) startBackground(e home.Environment) error {
	return o.openState(e, func(s *state.State) error {
		mark := logSize(e)
		alive, err := o.parts.Processes.Start(e)
		if err != nil {
			tail := readLogTail(e, mark)
			return errors.Join(err, tail)
		}

		pid, err := o.awaitBackground(s, e, alive)
		if err != nil {
			tail := readLogTail(e, mark)
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

func (o *operator) describeProcess(pid int) string {
	if service := o.parts.Services.Of(pid); service != "" {
		return fmt.Sprintf("with process id %d, as systemd's %s", pid, service)
	}
	return fmt.Sprintf("with process id %d", pid)
}

// awaitOther returns the id of the process that runs machine 0, or 0 if no process runs it. While a process
// is about to run the machine, to switch to a different binary, or to end, awaitOther waits for it, since a
// second process would be refused until then.
func (o *operator) awaitOther(e home.Environment) (pid int, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, startTimeout)
	defer cancel()

	for {
		pid, err = o.parts.Processes.Running(e.MachineDir("0"))
		if pid != 0 || err != nil {
			return pid, err
		}
		other, err := o.parts.Processes.Process(e.MachineDir("0"))
		if other == 0 || err != nil {
			return 0, err
		}

		if backoff.Sleep(ctx, processPollInterval) == nil {
			continue
		}
		if err := o.ctx.Err(); err != nil {
			return 0, err
		}

		return 0, console.Hint(
			fmt.Errorf("process %d has locked the directory of machine 0, but does not run the machine", other),
			fmt.Sprintf("to end it: kill -9 %d", other),
		)
	}
}

// awaitBackground waits until the environment's process has announced itself, and returns its id. It returns
// an error if the process ends, or takes longer than startTimeout.
func (o *operator) awaitBackground(s *state.State, e home.Environment, alive func() bool) (pid int, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, startTimeout)
	defer cancel()

	for {
		lives := alive()
		if pid, err = o.parts.Processes.Running(e.MachineDir("0")); err != nil {
			return 0, err
		}
		ready, err := state.Read(ctx, s, func(v *state.View) (bool, error) {
			return v.IsPresent(state.MachineAgent("0"))
		})

		switch {
		case ctx.Err() != nil:
			return 0, o.explainStart(e, pid, lives)
		case err != nil || ready && pid != 0:
			return pid, err
		case !lives && pid == 0:
			// Another program may have started a process, which is still starting up.
			if other, err := o.parts.Processes.Process(e.MachineDir("0")); other == 0 || err != nil {
				return 0, cmp.Or(err, errors.New("the background process has ended"))
			}
		}

		if err := backoff.Sleep(ctx, processPollInterval); err != nil {
			return 0, o.explainStart(e, pid, lives)
		}
	}
}

// explainStart describes the state of a process that has not started in time, as on a busy host.
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
		return err
	}

	return console.Hint(err,
		"it may still start: juju status -e "+e.Name+" shows when machine 0 runs; juju start waits for that again")
}

func logSize(e home.Environment) int {
	info, err := os.Stat(e.LogFile("0"))
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// readLogTail returns the log since the mark, at most its last 2 KiB, as an error.
func readLogTail(e home.Environment, mark int) error {
	text, err := os.ReadFile(e.LogFile("0"))
	if err != nil || len(text) <= mark {
		return nil
	}
	return fmt.Errorf("the log %s ends:\n%s",
		e.LogFile("0"), strings.TrimSpace(string(text[max(mark, len(text)-2048):])))
}
