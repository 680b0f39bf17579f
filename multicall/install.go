package multicall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state/durable"
)

// installCmd is `bijou install`.
type installCmd struct {
	Dir   string `help:"Where to make the links; default: the folder of this binary." type:"path" placeholder:"DIR"`
	Force bool   `help:"Replace files of other programs, too."`

	Systemd    bool   `help:"Write systemd's unit files for an environment; links are made only with --dir."`
	Env        string `type:"path" placeholder:"DIR" help:"The environment's folder, for --systemd; default: that of the one in use."`
	Machine    string `placeholder:"ID" help:"For --systemd: only the unit file of this machine's agent, on a host of its own."`
	Neco       bool   `help:"For --systemd: the unit files of neco-updater and neco-worker, which are linked beside this binary or in --dir."`
	SystemdDir string `type:"path" placeholder:"DIR" help:"Where the unit files go; default: /etc/systemd/system."`
}

// Help shows how it is used.
func (installCmd) Help() string {
	return `Every link is replaced at once (a temporary name, then a rename), so that it may be
repeated while the applets are in use. A file that is not a link to bijou is only replaced with --force.

With --systemd an environment's processes become systemd's: its background process, and templates for a
unit alone and another provisioner. A process that runs in the background goes over when the service starts.

Examples:
  bijou install --dir ~/bin
  sudo bijou install --systemd --env ~/.bijou/default
  sudo bijou install --dir /usr/local/bin --systemd --neco
  sudo bijou install --dir /usr/local/bin --force`
}

// Run makes what was asked for and prints one line for each file that it made.
func (i installCmd) Run(c *call) error {
	if i.Systemd || i.Env != "" || i.SystemdDir != "" || i.Machine != "" || i.Neco {
		if err := i.unitFiles(c.streams); err != nil || i.Dir == "" {
			return err
		}
	}
	return i.links(c)
}

// links makes the links.
func (i installCmd) links(c *call) error {
	target, err := self()
	if err != nil {
		return err
	}
	if i.Dir == "" {
		i.Dir = filepath.Dir(target)
	}
	if err := durable.MkdirAll(i.Dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %q: %w", i.Dir, err)
	}
	var refused []error
	for _, name := range names() {
		link := filepath.Join(i.Dir, name)
		done, err := i.link(target, link)
		switch {
		case err != nil:
			refused = append(refused, err)
		case done != "":
			fmt.Fprintf(c.streams.Out, "%s: %s\n", link, done)
		}
	}
	if len(refused) > 0 {
		return console.Hint(errors.Join(refused...), "--force replaces these files")
	}
	return nil
}

// link makes one link and says what it did; "" when that is bijou itself.
func (i installCmd) link(target, link string) (done string, err error) {
	if same(target, link) {
		return i.relink(target, link)
	}
	switch ours, err := isOurs(link); {
	case errors.Is(err, fs.ErrNotExist):
		return "linked", home.Symlink(target, link)
	case err != nil:
		return "", fmt.Errorf("cannot look at %q: %w", link, err)
	case ours:
		return "linked anew", home.Symlink(target, link)
	case i.Force:
		return "replaced", home.Symlink(target, link)
	}
	return "", fmt.Errorf("cannot link %q: it is a file of another program", link)
}

// relink handles a name that reaches this binary already: the binary itself is
// left alone, a link to it is made again only if it says something else.
func (i installCmd) relink(target, link string) (done string, err error) {
	to, err := os.Readlink(link)
	if err != nil {
		return "", nil
	}
	if to == target {
		return "linked already", nil
	}
	return "linked anew", home.Symlink(target, link)
}

// same tells if both paths lead to the same file.
func same(a, b string) bool {
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// isOurs tells if a path is a link that some bijou made: one whose target is
// called like a bijou binary, or that leads nowhere any more.
func isOurs(link string) (bool, error) {
	info, err := os.Lstat(link)
	if err != nil {
		return false, err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return false, nil
	}
	to, err := os.Readlink(link)
	if err != nil {
		return false, err
	}
	return looksLikeSelf(filepath.Base(to)), nil
}
