package juju

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"time"

	"bijou/multicall/console"
)

// runOnMachine goes the way of juju ssh: a machine's agent runs no commands of its own.
func (c execCmd) runOnMachine(o *operator) error {
	to, err := o.findMachineFolder(c.Machine)
	if err != nil {
		return err
	}
	line := quoteShellWords(o.command)
	if len(o.command) == 1 {
		line = o.command[0] // for a shell
	}
	command := to.Run("cd -P "+quoteShellWord(to.dir)+" || exit 1\n"+line, false)
	var stdout, stderr bytes.Buffer
	if command.Stdout, command.Stderr = &stdout, &stderr; c.Format == "plain" {
		command.Stdout, command.Stderr = o.streams.Out, o.streams.Err
	}
	command.WaitDelay = time.Second // what it has started may go on, and hold these
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot run on machine %s: %w", c.Machine, err)
	}
	timer := time.AfterFunc(cmp.Or(c.Timeout, math.MaxInt64), func() { _ = command.Process.Kill() })
	_ = command.Wait()
	code := command.ProcessState.ExitCode()
	switch {
	case !timer.Stop():
		return taskError(fmt.Errorf("on machine %s it had not ended after %s: it was ended", c.Machine, c.Timeout), true)
	case c.Format == "plain":
		return console.Exit(code, nil)
	}
	results := taskResults(nil, &code, stdout.String(), stderr.String())
	if err := o.encode(c.Format, map[string]task{c.Machine: {Status: "completed", Results: results}}); err != nil || code == 0 {
		return err
	}
	return console.Exit(code, taskError(fmt.Errorf("machine %s: exit code %d", c.Machine, code), false))
}
