package juju

import (
	"strings"
)

type sshCmd struct {
	Target  string   `arg:"" help:"A unit, or a machine's number."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"What to run there; default: a shell."`
}

// Help shows how it is used.
func (sshCmd) Help() string {
	return `Opens a shell in the unit's folder, or the machine's, or runs a command there. As with ssh, the words of the
command are joined by spaces and a shell reads the line; its exit code is the exit code.

On the provider "ssh" it is the system's own ssh, with the key and the known hosts of the environment; a
password is asked for. On "nspawn" it enters the container, which takes root. On "local", and on machine 0, it is this host.

Examples:
  juju ssh mysql/0
  juju ssh 3 uptime
  juju ssh mysql/0 'tail -n 3 *.log | grep -i error'`
}

// Run opens the shell, or runs the command, and returns its exit code.
func (c sshCmd) Run(o *operator) error {
	to, err := o.findMachineFolder(c.Target)
	if err != nil {
		return err
	}
	line := strings.Join(trimDashes(c.Command), " ")
	if line == "" {
		line = `exec "${SHELL:-/bin/sh}"`
	}
	// A line of its own, so that a comment at the command's end changes nothing.
	return o.runForeground(to.Run("cd -P "+quoteShellWord(to.dir)+" || exit 1\n"+line, o.isInteractive()))
}
