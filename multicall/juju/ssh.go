package juju

import (
	"cmp"
	"strings"
)

// containerFlags are of programs that know Juju, where charms may be on Kubernetes.
type containerFlags struct {
	Container       string `hidden:"" enum:",charm" default:"" help:"Where the charm is: on its unit's machine."`
	NoHostKeyChecks bool   `hidden:"" help:"As it is: hosts are those that the environment knows."`
}

type sshCmd struct {
	containerFlags
	Target  string   `arg:"" help:"A unit (SERVICE/leader: the one that leads), or a machine's number."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"What to run there; default: a shell."`
}

// Run opens the shell, or runs the command, and returns its exit code.
func (c sshCmd) Run(o *operator) error {
	to, err := o.findMachineFolder(c.Target)
	if err != nil {
		return err
	}
	line := cmp.Or(strings.Join(trimDashes(c.Command), " "), `exec "${SHELL:-/bin/sh}"`)
	// A line of its own, so that a comment at the command's end changes nothing.
	return o.runForeground(to.Run("cd -P "+quoteShellWord(to.dir)+" || exit 1\n"+line, o.isInteractive()))
}
