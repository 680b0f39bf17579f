package juju

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/unitdir"
)

// remoteName returns the file's name as scp or cp takes it. A relative one is in the machine's folder.
func (to machineFolder) remoteName(file string) string {
	if !path.IsAbs(file) {
		file = to.dir + "/" + file
	}
	if to.Host == "" {
		return file
	}

	return to.Host + ":" + file
}

// Access is how an operator gets onto a machine.
type Access struct {
	// Run returns the command that has the user's login shell run a line in that folder of
	// the machine, with a terminal of its own if so asked. Without a line the shell reads
	// stdin; without a folder it is where a login begins.
	Run func(dir, line string, terminal bool) *exec.Cmd
	// Dir is the machine's folder there.
	Dir string
	// Copy is the program that copies files, with its options; none: NoCopy says why.
	Copy   []string
	NoCopy string
	// Host goes before a colon and the name of a file there; empty: it is this host's.
	Host string
}

// machineFolder is a machine that can be reached, and a folder on it.
type machineFolder struct {
	Access
	dir string
}

// findMachineFolder returns the way to the host of a machine or unit, and the directory there.
func (o *operator) findMachineFolder(name string) (to machineFolder, err error) {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return to, err
	}

	var env state.Environment
	var m state.Machine
	unit := "" // the unit's name, if it is one
	err = o.openState(e, func(s *state.State) error {
		return s.View(o.ctx, func(v *state.View) error {
			var err error
			m, unit, err = findMachine(v, name)
			if err != nil {
				return err
			}
			env, err = v.Environment()
			return err
		})
	})
	if err != nil {
		return to, err
	}

	if m.InstanceID == "" && m.ID != "0" {
		return to, console.Hint(fmt.Errorf("machine %s does not exist yet: it has no instance", m.ID),
			"juju machines shows its progress")
	}
	if to.Access, err = o.parts.Providers.Access(e, env, m); err != nil {
		return to, err
	}

	to.dir = to.Dir
	if unit != "" {
		to.dir = string(unitdir.Of(to.Dir, unit).Legacy())
	}
	return to, nil
}

// findMachine returns the machine of that id, or of the unit of that name. unit is the unit's name, or "".
func findMachine(v *state.View, name string) (m state.Machine, unit string, err error) {
	machine := name
	if strings.Contains(name, "/") {
		unit, err = findUnitName(v, name)
		if err != nil {
			return m, "", err
		}
		u, err := v.Unit(unit)
		if err != nil {
			return m, "", err
		}
		machine = u.Machine
	}

	m, err = v.Machine(machine)
	return m, unit, err
}

// runForeground runs a program with juju's own streams, and returns the program's exit code as juju's.
func (o *operator) runForeground(c *exec.Cmd) error {
	c.Stdin = o.streams.In
	c.Stdout = o.streams.Out
	c.Stderr = o.streams.Err
	err := c.Run()

	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return console.Exit(exit.ExitCode(), nil)
	case errors.Is(err, exec.ErrNotFound):
		return console.Hint(fmt.Errorf("cannot run %s: it is not installed", c.Args[0]),
			"install it, on Debian with: apt install openssh-client util-linux")
	case err != nil:
		return fmt.Errorf("cannot run %s: %w", c.Args[0], err)
	}

	return nil
}
