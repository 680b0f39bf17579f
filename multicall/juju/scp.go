package juju

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"bijou/multicall/console"
)

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
		c.Recursive = true
		c.From = c.To
		c.To = c.Last
		c.Last = ""
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
		return console.Hint(
			fmt.Errorf("cannot copy: %s", to.NoCopy),
			"let it go by a pipe: juju ssh "+place+" 'cat FILE' >FILE; juju ssh "+place+
				" 'cat >FILE' <FILE; of a folder: tar -c, tar -x",
		)
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
