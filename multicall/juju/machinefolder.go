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

// remoteName returns the file's name in the form that scp or cp expects. A relative name refers to the
// directory of the machine or unit.
func (to machineFolder) remoteName(file string) string {
	if !path.IsAbs(file) {
		file = to.dir + "/" + file
	}
	if to.Host == "" {
		return file
	}

	return to.Host + ":" + file
}

// Access describes how an operator reaches a machine.
type Access struct {
	// Run returns a command that runs line in the user's login shell on the machine, in the directory dir. If
	// terminal is true, the shell gets its own terminal. If line is empty, the shell reads stdin. If dir is
	// empty, the shell begins in the directory of a login.
	Run func(dir, line string, terminal bool) *exec.Cmd
	// Dir is the machine's directory on its host.
	Dir string
	// Copy is the program that copies files, with its options. If it is empty, NoCopy is
	// the reason.
	Copy   []string
	NoCopy string
	// Host is the part before the colon in the name of a file on the machine. It is empty if the file is on
	// this host.
	Host string
}

// machineFolder is a machine that can be reached, and a directory on it.
type machineFolder struct {
	Access
	dir string
}

// findMachineFolder returns the access to a machine, and the directory of the machine or of a unit on it.
// name is a machine's id, a unit's name or SERVICE/leader. findMachineFolder returns an error if a machine
// other than machine 0 has no instance yet.
func (o *operator) findMachineFolder(name string) (machineFolder, error) {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return machineFolder{}, err
	}

	var env state.Environment
	var m state.Machine
	unit := "" // empty if name is a machine's id
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
		return machineFolder{}, err
	}

	// Machine 0 can be reached without an instance.
	if m.InstanceID == "" && m.ID != "0" {
		return machineFolder{}, console.Hint(fmt.Errorf("machine %s has no instance yet", m.ID),
			"juju machines shows its progress")
	}

	access, err := o.parts.Providers.Access(e, env, m)
	if err != nil {
		return machineFolder{}, err
	}

	dir := access.Dir
	if unit != "" {
		// The machine may run an older agent, which only has this path.
		dir = string(unitdir.Of(access.Dir, unit).Legacy())
	}
	return machineFolder{Access: access, dir: dir}, nil
}

// findMachine returns the machine that name stands for. name is a machine's id, a unit's name or SERVICE/leader.
// unit is the unit's name, or "" if name is a machine's id.
func findMachine(v *state.View, name string) (m state.Machine, unit string, err error) {
	id := name
	if strings.Contains(name, "/") {
		unit, err = findUnitName(v, name)
		if err != nil {
			return m, "", err
		}

		u, err := v.Unit(unit)
		if err != nil {
			return m, "", err
		}
		id = u.Machine
	}

	m, err = v.Machine(id)
	return m, unit, err
}

// runForeground runs a program with juju's own streams, and returns the program's exit code as juju's exit
// code. It returns an error if the program cannot be run, or was ended by a signal.
func (o *operator) runForeground(c *exec.Cmd) error {
	c.Stdin = o.streams.In
	c.Stdout = o.streams.Out
	c.Stderr = o.streams.Err
	err := c.Run()

	var exit *exec.ExitError
	switch {
	// A program that a signal has ended has the exit code -1, and is an error below.
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		// The program has printed its own error.
		return console.Exit(exit.ExitCode(), nil)
	case errors.Is(err, exec.ErrNotFound):
		// openssh-client has ssh and scp, and util-linux has nsenter.
		return console.Hint(fmt.Errorf("cannot run %s: it is not installed", c.Args[0]),
			"install it, on Debian with: apt install openssh-client util-linux")
	case err != nil:
		return fmt.Errorf("cannot run %s: %w", c.Args[0], err)
	}

	return nil
}
