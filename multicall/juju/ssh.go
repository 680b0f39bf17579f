package juju

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
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

type scpCmd struct {
	Recursive bool   `short:"r" help:"Copy folders with all that is in them."`
	From      string `arg:"" help:"A file of this host, or UNIT:FILE, or MACHINE:FILE."`
	To        string `arg:"" help:"Where it goes, written in the same way."`
	Last      string `arg:"" optional:"" hidden:"" help:"Where it goes, if -r stands behind two dashes."`
	containerFlags
}

// Run copies, with the program of the machine's provider.
func (c scpCmd) Run(o *operator) error {
	if c.From == "-r" && c.Last != "" {
		c.Recursive, c.From, c.To, c.Last = true, c.To, c.Last, ""
	}
	if c.Last != "" {
		return console.Usage(errors.New("cannot copy: want what to copy and where it goes, and no option but -r"))
	}
	place, file, from := cutRemote(c.From)
	if !from {
		var to bool
		if place, file, to = cutRemote(c.To); !to {
			return console.Usage(errors.New("cannot copy: neither is on a machine: want UNIT:FILE, or MACHINE:FILE"))
		}
	} else if _, _, both := cutRemote(c.To); both {
		return console.Usage(errors.New("cannot copy from one machine to another: copy it here first"))
	}
	to, err := o.findMachineFolder(place)
	if err != nil {
		return err
	}
	if len(to.Copy) == 0 {
		return console.Hint(fmt.Errorf("cannot copy: %s", to.NoCopy), "let it go by a pipe: juju ssh "+place+" 'cat FILE' >FILE; juju ssh "+place+" 'cat >FILE' <FILE; of a folder: tar -c, tar -x")
	}
	file = to.remoteName(file)
	words := [2]string{file, localName(c.To)}
	if !from {
		words = [2]string{localName(c.From), file}
	}
	args := to.Copy[1:len(to.Copy):len(to.Copy)]
	if c.Recursive {
		args = append(args, "-r")
	}
	return o.runForeground(exec.Command(to.Copy[0], append(args, "--", words[0], words[1])...))
}

// cutRemote cuts UNIT:FILE or MACHINE:FILE; a colon after anything else belongs to a local
// file's name.
func cutRemote(text string) (place, file string, ok bool) {
	place, file, ok = strings.Cut(text, ":")
	machine := place != "" && strings.Trim(place, "0123456789") == ""
	return place, file, ok && (machine || isUnitWord(place))
}

// localName keeps scp from taking a colon in a local file's name for a host's.
func localName(file string) string {
	if path.IsAbs(file) || strings.HasPrefix(file, ".") {
		return file
	}
	return "./" + file
}

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

func (o *operator) findMachineFolder(name string) (to machineFolder, err error) {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return to, err
	}
	var env state.Environment
	var m state.Machine
	unit := strings.Contains(name, "/")
	err = o.openState(e, func(s *state.State) error {
		return s.View(o.ctx, func(v *state.View) error {
			machine := name
			if unit {
				if name, err = findUnitName(v, name); err != nil {
					return err
				}
				u, err := v.Unit(name)
				if err != nil {
					return err
				}
				machine = u.Machine
			}
			if m, err = v.Machine(machine); err != nil {
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
		return to, console.Hint(fmt.Errorf("machine %s is not there yet: it has no instance", m.ID), "juju machines says how far it is")
	}
	if to.Access, err = o.parts.Providers.Access(e, env, m); err != nil {
		return to, err
	}
	to.dir = to.Dir
	if unit {
		to.dir = o.parts.Hooks.UnitDir(to.Dir, name)
	}
	return to, nil
}

// runForeground gives the program juju's own streams, and returns its exit code as juju's.
func (o *operator) runForeground(c *exec.Cmd) error {
	c.Stdin, c.Stdout, c.Stderr = o.streams.In, o.streams.Out, o.streams.Err
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return console.Exit(exit.ExitCode(), nil)
	case errors.Is(err, exec.ErrNotFound):
		return console.Hint(fmt.Errorf("cannot run %s: it is not installed", c.Args[0]), "install it, on Debian with: apt install openssh-client util-linux")
	case err != nil:
		return fmt.Errorf("cannot run %s: %w", c.Args[0], err)
	}
	return nil
}

// QuoteShellWord returns a word as a shell reads it.
func QuoteShellWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
