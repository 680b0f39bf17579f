package juju

import (
	"os"
	"strings"

	"bijou/multicall/console"
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

	line := strings.Join(trimDashes(c.Command), " ")
	in, ok := o.streams.In.(*os.File)
	interactive := ok && console.IsTerminal(in) && console.IsTerminal(o.streams.Out)
	return o.runForeground(to.Run(to.dir, line, interactive))
}
