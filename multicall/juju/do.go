package juju

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/secretkeys"
)

type doCmd struct {
	Unit        string   `placeholder:"UNIT" help:"Act as this unit; without it every tool is told its unit."`
	RelationID  string   `name:"relation-id" placeholder:"ID" help:"Act as a hook of this relation."`
	HookDialect string   `placeholder:"DIALECT" help:"What the tools speak, classic or modern; default: what the unit's charm does, else classic."`
	State       string   `placeholder:"URL" help:"The environment's state, where there is no folder of the environment; default: $$JUJU_STATE."`
	Command     []string `arg:"" passthrough:"partial" help:"The command with its arguments; or one unit: a shell as that unit."`
}

// HookCommand is a command to be run as a hook.
type HookCommand struct {
	Unit, Relation string // empty: none
	Dialect        string // empty: the unit's
	Command        []string
	Streams        console.Streams
	Environ        []string               // beside the process's own
	MachineDir     func(id string) string // a machine's folder on this host
	SecretKeys     secretkeys.File
}

// HookOutcome is how the command ended.
type HookOutcome struct {
	Exit    int // its exit code
	Changed int // what it has changed, in settings and ports
}

// Run runs the command and ends with its exit code.
func (c doCmd) Run(o *operator) error {
	if _, err := charm.ParseDialect(c.HookDialect); err != nil {
		return console.Usage(err)
	}
	words := trimDashes(c.Command)
	if len(words) == 0 {
		return console.Hint(console.Usage(errors.New("it is not said what to do")), "see: juju do --help")
	}
	command := HookCommand{
		Unit: c.Unit, Relation: c.RelationID, Dialect: c.HookDialect, Command: words, Streams: o.streams,
	}
	if url := c.stateURL(o); url != "" {
		command.Environ = []string{"JUJU_STATE=" + url}
		return c.runAsHook(o, home.Environment{Record: home.Record{State: url}}, command)
	}
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	command.Environ = []string{"JUJU_ENV=" + e.Name, "BIJOU_HOME=" + o.home.Dir}
	command.MachineDir, command.SecretKeys = e.MachineDir, e.SecretKeys()
	return c.runAsHook(o, e, command)
}

// trimDashes drops the "--" that ends juju's own flags.
func trimDashes(words []string) []string {
	if len(words) > 0 && words[0] == "--" {
		return words[1:]
	}
	return words
}

// stateURL is empty if only the environment's name says where the state is. -e takes
// precedence over the JUJU_STATE of an outer juju do.
func (c doCmd) stateURL(o *operator) string {
	if c.State == "" && o.name == "" {
		return os.Getenv("JUJU_STATE")
	}
	return c.State
}

func (c doCmd) runAsHook(o *operator, e home.Environment, command HookCommand) error {
	return o.openState(e, func(s *state.State) error {
		outcome, err := o.parts.Hooks.Run(o.ctx, s, command)
		if outcome.Changed > 0 && e.Dir != "" {
			o.warnIfDown(e)
		}
		return console.Exit(outcome.Exit, err)
	})
}

type debugHooksCmd struct {
	Unit     string   `arg:"" help:"The unit, on this host."`
	Hooks    []string `arg:"" optional:"" name:"hook" help:"Only these hooks; default: all that its charm has."`
	Detached bool     `help:"Only make the session, and say how to attach to it."`
}

// Run makes the session and attaches to it.
func (c debugHooksCmd) Run(o *operator) error {
	if _, err := exec.LookPath("tmux"); err != nil {
		return console.Hint(errors.New("cannot debug hooks: tmux is not installed"), "install it, on Debian with: apt install tmux")
	}
	if !c.Detached && !console.IsTerminal(o.streams.In) {
		return console.Hint(errors.New("cannot debug hooks: stdin is no terminal"), "use --detached, and attach from a terminal")
	}
	if err := c.checkUnitIsLocal(o); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bijou-debug-")
	if err != nil {
		return fmt.Errorf("cannot debug hooks: %w", err)
	}
	socket := filepath.Join(dir, "s")
	if err := c.startSession(o, socket); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if c.Detached {
		fmt.Fprintf(o.streams.Out, "tmux -S %s attach -t %s\n", socket, state.DebugSession)
		return nil
	}
	return c.attachSession(o, socket)
}

func (c debugHooksCmd) checkUnitIsLocal(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	u, err := readChosen(o, func(v *state.View) (state.Unit, error) { return v.Unit(c.Unit) })
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.parts.Hooks.UnitDir(e.MachineDir(u.Machine), u.Name)); err != nil {
		return fmt.Errorf("cannot debug hooks: unit %q is not on this host (it is on machine %s)", u.Name, u.Machine)
	}
	return nil
}

// startSession starts tmux before it tells the unit's agent, which would find no session otherwise.
func (c debugHooksCmd) startSession(o *operator, socket string) error {
	intro := fmt.Sprintf("echo 'Hooks of %s open windows here. The session ends with its last window.'; exec \"${SHELL:-/bin/sh}\"", c.Unit)
	tmux := exec.Command("tmux", "-S", socket, "new-session", "-d", "-s", state.DebugSession, "-n", c.Unit, "/bin/sh", "-c", intro)
	if out, err := tmux.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make a tmux session: %w: %s", err, strings.TrimSpace(string(out)))
	}
	owner := os.Geteuid()
	err := o.update(func(tx *state.Tx) error {
		return tx.SetDebug(c.Unit, state.Debug{Socket: socket, Hooks: c.Hooks, By: console.Caller(), Owner: &owner})
	})
	if err != nil {
		killed := exec.Command("tmux", "-S", socket, "kill-server").Run()
		return errors.Join(err, killed)
	}
	return nil
}

func (c debugHooksCmd) attachSession(o *operator, socket string) error {
	tmux := exec.Command("tmux", "-S", socket, "attach", "-t", state.DebugSession)
	tmux.Stdin, tmux.Stdout, tmux.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := tmux.Run(); err != nil {
		return fmt.Errorf("cannot attach to the tmux session: %w", err)
	}
	if exec.Command("tmux", "-S", socket, "has-session", "-t", state.DebugSession).Run() == nil {
		o.note("the session goes on; back to it with: tmux -S %s attach -t %s", socket, state.DebugSession)
		return nil
	}
	if err := os.RemoveAll(filepath.Dir(socket)); err != nil {
		return fmt.Errorf("cannot clean up: %w", err)
	}
	return o.update(func(tx *state.Tx) error { return tx.ClearDebug(c.Unit, socket) })
}

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
	command := to.Run(to.dir, line, false)
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
