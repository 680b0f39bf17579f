package juju

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"sync"
	"time"

	"bijou/multicall/console"
)

// machineRun is a command on one machine.
type machineRun struct {
	machine        string
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	err            error // set if the command did not start, or was ended after the timeout
}

// runOnMachines runs the command on all given machines at the same time, once on each, and prints the
// results. It runs the command as juju ssh does, since a machine's agent does not run commands.
func (c execCmd) runOnMachines(o *operator) error {
	if c.Background || c.Detach {
		return console.Usage(errors.New("--background cannot be used with --machine: no agent of a machine queues commands"))
	}
	c.Machine = distinct(c.Machine)

	line := quoteShellWords(o.command)
	if len(o.command) == 1 {
		// A single word is a line for a shell.
		line = o.command[0]
	}

	var runs []*machineRun
	for _, id := range c.Machine {
		folder, err := o.findMachineFolder(id)
		if err != nil {
			return err
		}

		// folder.Run only returns the command, which r.run runs below.
		const terminal = false
		r := &machineRun{machine: id, command: folder.Run(folder.dir, line, terminal)}
		r.command.Stdout = &r.stdout
		r.command.Stderr = &r.stderr
		// The plain output of a single machine is printed at once, without a prefix.
		if c.Format == "plain" && len(c.Machine) == 1 {
			r.command.Stdout = o.streams.Out
			r.command.Stderr = o.streams.Err
		}
		runs = append(runs, r)
	}

	var running sync.WaitGroup
	for _, r := range runs {
		running.Go(func() { r.run(c.Timeout) })
	}
	running.Wait()

	return c.printMachines(o, runs)
}

// run runs the command and waits for its end. It kills the command after the timeout. A timeout of 0 means no
// limit. It sets r.err if the command does not start, or does not end in time.
func (r *machineRun) run(timeout time.Duration) {
	// Processes that the command has started may outlive it, and keep its streams open.
	r.command.WaitDelay = time.Second
	if err := r.command.Start(); err != nil {
		r.err = fmt.Errorf("cannot run on machine %s: %w", r.machine, err)
		return
	}

	limit := cmp.Or(timeout, math.MaxInt64)
	// Kill fails only if the command has already ended.
	timer := time.AfterFunc(limit, func() { _ = r.command.Process.Kill() })
	// printMachines takes the exit code from the command's ProcessState.
	_ = r.command.Wait()
	// Stop returns false if the timer has already killed the command.
	hasExpired := !timer.Stop()
	if hasExpired {
		err := fmt.Errorf("the command on machine %s had not ended after %s, so bijou ended it", r.machine, timeout)
		r.err = timeoutError(err)
	}
}

// printMachines prints the results, and returns an error that sets the exit code of juju. For a single
// machine, that is the exit code of the command. For several machines, it is 1 if the command failed on any
// of them. If a command did not start or was ended after the timeout, the error of its run also makes juju fail.
func (c execCmd) printMachines(o *operator, runs []*machineRun) error {
	var errs []error
	// In the plain format, the output of a single machine already shows a failure.
	reportsFailure := c.Format != "plain" || len(runs) > 1
	code := console.ExitOK
	tasks := map[string]task{}
	for _, r := range runs {
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}

		exit := r.command.ProcessState.ExitCode()
		if exit != 0 {
			code = console.ExitFailure
		}
		if len(runs) == 1 {
			code = exit
		}
		if exit != 0 && reportsFailure {
			errs = append(errs, taskError(fmt.Errorf("machine %s: exit code %d", r.machine, exit)))
		}
		tasks[r.machine] = task{Status: "completed", Results: taskResults(nil, &exit, r.stdout.Bytes(), r.stderr.Bytes())}
	}

	if err := c.printOutput(o, runs, tasks); err != nil {
		return err
	}

	// If every command that ran to its end has succeeded, the errors set the exit code.
	if len(errs) > 0 && code == console.ExitOK {
		return joinErrors(errs)
	}
	return console.Exit(code, joinErrors(errs))
}

// printOutput prints the output of all runs if the format is plain, with the machine in front of each line.
// In that format, the output of a single machine is printed already. In any other format, printOutput prints
// the tasks, which are by machine, if there are any.
func (c execCmd) printOutput(o *operator, runs []*machineRun, tasks map[string]task) error {
	if c.Format == "plain" {
		for _, r := range runs {
			writePrefixed(o.streams.Out, r.machine+": ", r.stdout.String())
			writePrefixed(o.streams.Err, r.machine+": ", r.stderr.String())
		}
		return nil
	}

	if len(tasks) == 0 {
		return nil
	}
	return o.encode(c.Format, tasks)
}

// writePrefixed writes the text with the prefix at the beginning of each line. It writes nothing for an empty
// text.
func writePrefixed(w io.Writer, prefix, text string) {
	if text == "" {
		return
	}
	fmt.Fprintln(w, prefix+strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix))
}
