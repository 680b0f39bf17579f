// Package install is `bijou install`: links for the applets, and systemd's unit files. It
// imports no role. Only multicall imports it.
package install

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state/durable"
)

// Command is the command line of `bijou install`.
type Command struct {
	Dir   string `help:"Where to make the links; default: /usr/local/bin for root, else ~/.local/bin." type:"path" placeholder:"DIR"`
	Yes   bool   `short:"y" help:"Without --dir: do not ask."`
	Force bool   `help:"Replace files of other programs, too."`
	Jujud bool   `help:"As root: link /var/lib/juju/tools/machine-0/jujud, which some charms call; other links are made only with --dir."`

	Systemd    bool   `help:"Write systemd's unit files for an environment; links are made only with --dir."`
	Env        string `type:"path" placeholder:"DIR" help:"The environment's folder, for --systemd; default: that of the one in use."`
	Machine    string `placeholder:"ID" help:"For --systemd: only the unit file of this machine's agent, on a host of its own."`
	Neco       bool   `help:"For --systemd: the unit files of neco-updater and neco-worker, which are linked beside this binary or in --dir."`
	SystemdDir string `type:"path" placeholder:"DIR" help:"Where the unit files go; default: /etc/systemd/system."`
}

// Run makes links or unit files, and prints one line for each.
func (i Command) Run(c *applet.Call) error {
	if i.Systemd || i.Env != "" || i.SystemdDir != "" || i.Machine != "" || i.Neco {
		if err := i.installUnitFiles(c.Streams); err != nil || i.Dir == "" {
			return err
		}
	}
	if i.Jujud {
		err := i.makeLinks(c, jujudDir, []string{"jujud"})
		if err != nil || i.Dir == "" {
			return err
		}
	}
	dir := i.Dir
	if dir == "" {
		var err error
		if dir, err = defaultDir(); err == nil && !i.Yes {
			err = confirmDir(c.Streams, dir, len(c.Applets))
		}
		if err != nil {
			return err
		}
	}
	defer hintIfNotOnPath(c.Streams, dir)
	return i.makeLinks(c, dir, c.Applets)
}

// jujudDir is where Juju has its binary on machine 0, and charms call it.
const jujudDir = "/var/lib/juju/tools/machine-0"

func defaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/usr/local/bin", nil
	}
	user, err := os.UserHomeDir()
	return filepath.Join(user, ".local", "bin"), err
}

func confirmDir(s console.Streams, dir string, links int) error {
	if !console.IsTerminal(s.In) {
		return console.Hint(fmt.Errorf("nothing was linked: nobody is there to be asked about %s", dir), "--yes does not ask; --dir DIR links elsewhere")
	}
	fmt.Fprintf(s.Err, "Link %d names in %s? [y/N] ", links, dir)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.Join(errors.New("nothing was linked"), err)
	}
	return nil
}

func hintIfNotOnPath(s console.Streams, dir string) {
	if !slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(p string) bool { return applet.IsSameFile(p, dir) }) {
		fmt.Fprintf(s.Err, "hint: %s is not on your PATH: export PATH=\"%s:$PATH\"\n", dir, dir)
	}
}

func (i Command) makeLinks(c *applet.Call, dir string, names []string) error {
	target, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %q: %w", dir, err)
	}
	var refused []error
	for _, name := range names {
		link := filepath.Join(dir, name)
		done, err := i.makeLink(target, link)
		switch {
		case err != nil:
			refused = append(refused, err)
		case done != "":
			fmt.Fprintf(c.Streams.Out, "%s: %s\n", link, done)
		}
	}
	if len(refused) > 0 {
		return console.Hint(errors.Join(refused...), "--force replaces these files")
	}
	return nil
}

func (i Command) makeLink(target, link string) (done string, err error) {
	if applet.IsSameFile(target, link) {
		return i.updateLink(target, link)
	}
	switch ours, err := isBijouLink(link); {
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

// updateLink leaves the binary itself alone, and renews a link that reaches it by other
// words.
func (i Command) updateLink(target, link string) (done string, err error) {
	to, err := os.Readlink(link)
	if err != nil {
		return "", nil
	}
	if to == target {
		return "linked already", nil
	}
	return "linked anew", home.Symlink(target, link)
}

// isBijouLink reports whether some bijou made the link: its target is called like a bijou
// binary, whether it exists or not.
func isBijouLink(link string) (bool, error) {
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
	return applet.IsBijouName(filepath.Base(to)), nil
}
