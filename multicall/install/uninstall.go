package install

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/systemd"
)

// Removal is the command line of `bijou uninstall`.
type Removal struct{ places }

// Run removes links to this binary or unit files, and prints one line for each.
func (r Removal) Run(c *applet.Call) error {
	return r.visit(c, "Remove the links to this program in %s", r.removeUnitFiles, removeLinks)
}

// removeLinks leaves the binary itself alone, and links to another one.
func removeLinks(s console.Streams, dir string, names []string) error {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	for _, name := range names {
		link := filepath.Join(dir, name)
		switch to, linkErr := os.Readlink(link); {
		case errors.Is(linkErr, fs.ErrNotExist):
		case linkErr != nil || to != binary && !applet.IsSameFile(link, binary):
			fmt.Fprintf(s.Err, "%s stays: it is no link to %s\n", link, binary)
		default:
			if linkErr = os.Remove(link); linkErr == nil {
				fmt.Fprintf(s.Out, "%s: removed\n", link)
			}
			err = errors.Join(err, linkErr)
		}
	}
	if dir == jujudDir {
		_ = os.Remove(dir) // which fails where something is left
	}
	return err
}

func (r Removal) removeUnitFiles(s console.Streams) error {
	set, err := r.selectUnits()
	if err != nil {
		return err
	}
	dir := cmp.Or(r.SystemdDir, systemd.Dir)
	removed, err := systemd.Remove(dir, set.units, set.owner)
	for _, name := range removed {
		fmt.Fprintf(s.Out, "%s: removed\n", filepath.Join(dir, name))
	}
	return console.Hint(err, unitFileHints(err)...)
}
