package juju

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/unitdir"
)

type debugHooksCmd struct {
	Unit     string   `arg:"" help:"The unit, on this host."`
	Hooks    []string `arg:"" optional:"" name:"hook" help:"Debug only these hooks; default: all hooks of the charm."`
	Detached bool     `help:"Only create the session, and print how to attach to it."`
}

// Run starts a tmux session, in which the unit's agent runs the hooks, and attaches the terminal to the
// session. With --detached, it prints the command that attaches instead.
func (c debugHooksCmd) Run(o *operator) error {
	if _, err := exec.LookPath("tmux"); err != nil {
		return console.Hint(errors.New("cannot debug hooks: tmux is not installed"),
			"install it, on Debian with: apt install tmux")
	}
	if !c.Detached && !console.IsTerminal(o.streams.In) {
		return console.Hint(errors.New("cannot debug hooks: stdin is not a terminal"),
			"use --detached, and attach from a terminal")
	}
	// The unit's agent opens windows through the socket, so the unit must be on this host.
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
		// The session still needs the directory of its socket, so the directory stays.
		fmt.Fprintf(o.streams.Out, "tmux -S %s attach -t %s\n", socket, actions.DebugSession)
		return nil
	}

	return c.attachSession(o, socket)
}

// checkUnitIsLocal returns an error if the unit's directory is not on this host.
func (c debugHooksCmd) checkUnitIsLocal(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	u, err := readChosen(o, func(v *state.View) (state.Unit, error) { return v.Unit(c.Unit) })
	if err != nil {
		return err
	}
	// Legacy returns the path that is valid with agents of every version.
	dir := unitdir.Of(e.MachineDir(u.Machine), u.Name).Legacy()
	if _, err := os.Stat(string(dir)); err != nil {
		return fmt.Errorf("cannot debug hooks: unit %q is not on this host (it is on machine %s)",
			u.Name, u.Machine)
	}

	return nil
}

// startSession starts a tmux session on the socket, and then requests debugging in the state. The session
// must exist before the request, since the unit's agent looks for the session at once. If the request fails,
// startSession ends the session.
func (c debugHooksCmd) startSession(o *operator, socket string) error {
	script := fmt.Sprintf(
		"echo 'Hooks of %s open windows here. The session ends with its last window.'; exec \"${SHELL:-/bin/sh}\"",
		c.Unit,
	)

	tmux := exec.Command("tmux", "-S", socket, "new-session", "-d", "-s", actions.DebugSession, "-n", c.Unit,
		"/bin/sh", "-c", script)
	if out, err := tmux.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot create a tmux session: %w: %s", err, strings.TrimSpace(string(out)))
	}

	owner := os.Geteuid() // owns the directory of the socket
	err := o.update(func(tx *state.Tx) error {
		return actions.SetDebug(tx, c.Unit, actions.Debug{
			Socket: socket,
			Hooks:  c.Hooks,
			By:     console.Caller(),
			Owner:  &owner,
		})
	})
	if err != nil {
		killErr := exec.Command("tmux", "-S", socket, "kill-server").Run()
		return errors.Join(err, killErr)
	}

	return nil
}

// attachSession attaches the terminal to the tmux session on the socket until the user detaches or the
// session ends. If the session has ended, attachSession removes the socket's directory and the request for
// debugging. If the user has detached, it prints how to attach again.
func (c debugHooksCmd) attachSession(o *operator, socket string) error {
	tmux := exec.Command("tmux", "-S", socket, "attach", "-t", actions.DebugSession)
	tmux.Stdin = os.Stdin
	tmux.Stdout = os.Stdout
	tmux.Stderr = os.Stderr
	if err := tmux.Run(); err != nil {
		return fmt.Errorf("cannot attach to the tmux session: %w", err)
	}

	hasSession := exec.Command("tmux", "-S", socket, "has-session", "-t", actions.DebugSession)
	if hasSession.Run() == nil { // the session still exists
		o.note("the session continues; to return to it: tmux -S %s attach -t %s", socket, actions.DebugSession)
		return nil
	}
	if err := os.RemoveAll(filepath.Dir(socket)); err != nil {
		return fmt.Errorf("cannot clean up: %w", err)
	}

	return o.update(func(tx *state.Tx) error { return actions.ClearDebug(tx, c.Unit, socket) })
}
