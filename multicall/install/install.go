// Package install is `bijou install`: links for the applets, and systemd's unit files. It
// imports no role. Only multicall imports it.
package install

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state/osutil"
)

// places name what install and uninstall are about.
type places struct {
	Dir   string `help:"The links' folder; default: /usr/local/bin for root, else ~/.local/bin." type:"path" placeholder:"DIR"`
	Yes   bool   `short:"y" help:"Without --dir: do not ask."`
	Jujud bool   `help:"As root: the links /var/lib/juju/tools/machine-0/jujud, /usr/bin/juju-exec and /usr/bin/juju-run, which charms call; other links only with --dir."`

	Systemd    bool   `help:"Write systemd's unit files of a model; make links only with --dir."`
	Env        string `type:"path" placeholder:"DIR" help:"Use the model in this directory, with --systemd; default: the model in use."`
	Machine    string `placeholder:"ID" help:"For --systemd: only the unit file of this machine's agent, on a host of its own."`
	Neco       bool   `help:"For --systemd: the unit files of neco-updater and neco-worker, whose links are beside this binary or in --dir."`
	SystemdDir string `type:"path" placeholder:"DIR" help:"Where the unit files are; default: /etc/systemd/system."`
}

// visit calls units and links for the places that the flags name. If the flags name units or jujud, and no
// directory, those are all. Otherwise links gets all applets for the directory, or for the default one after
// a question.
func (p places) visit(
	c *applet.Call,
	question string,
	units func(console.Streams) error,
	links func(s console.Streams, dir string, names []string) error,
) error {
	isAboutUnits := p.Systemd || p.Env != "" || p.SystemdDir != "" || p.Machine != "" || p.Neco
	if isAboutUnits {
		if err := units(c.Streams); err != nil {
			return err
		}
		if p.Dir == "" {
			return nil
		}
	}

	if p.Jujud {
		if err := links(c.Streams, jujudDir, []string{"jujud"}); err != nil {
			return err
		}
		if err := links(c.Streams, jujuExecDir, []string{"juju-exec", "juju-run"}); err != nil {
			return err
		}
		if p.Dir == "" {
			return nil
		}
	}

	dir := p.Dir
	if dir == "" {
		var err error
		dir, err = defaultDir()
		if err != nil {
			return err
		}
		if !p.Yes {
			if err := confirmDir(c.Streams, fmt.Sprintf(question, dir), dir); err != nil {
				return err
			}
		}
	}

	return links(c.Streams, dir, c.Applets)
}

// Command is the command line of `bijou install`.
type Command struct {
	places
	Force   bool     `help:"Replace files of other programs, too."`
	Without []string `placeholder:"NAME,..." help:"Make no links of these names, as juju beside Canonical's; bijou NAME calls them."`
}

// Run makes links or unit files. It prints a line for each unit file. For the links it prints their number,
// the juju that a shell finds, and the next step.
func (i Command) Run(c *applet.Call) error {
	for _, name := range i.Without {
		if !slices.Contains(c.Applets, name) {
			return console.Usage(fmt.Errorf("--without %s: there is no such name", name))
		}
	}

	leftOut := func(name string) bool { return slices.Contains(i.Without, name) }
	c.Applets = slices.DeleteFunc(slices.Clone(c.Applets), leftOut)
	return i.visit(c, fmt.Sprintf("Link %d names in %%s", len(c.Applets)), i.installUnitFiles, i.makeLinks)
}

// Where Juju has what charms call: its binary on machine 0, and what is for cron jobs and services.
const (
	jujudDir    = "/var/lib/juju/tools/machine-0"
	jujuExecDir = "/usr/bin"
)

func defaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/usr/local/bin", nil
	}
	user, err := os.UserHomeDir()
	return filepath.Join(user, ".local", "bin"), err
}

// confirmDir asks the question about the directory. It returns an error if the answer is no, or if there is
// no terminal.
func confirmDir(s console.Streams, question, dir string) error {
	if !console.IsTerminal(s.In) {
		return console.Hint(fmt.Errorf("nothing was done: nobody is there to be asked about %s", dir),
			"--yes does not ask; --dir DIR is about another folder")
	}

	if !console.Confirm(s, question) {
		return errors.New("nothing was done")
	}
	return nil
}

// hintIfNotOnPath prints a hint if shells do not look into the directory.
func hintIfNotOnPath(s console.Streams, dir string) {
	if dir == jujudDir {
		return // charms call it by its path
	}
	for _, onPath := range filepath.SplitList(os.Getenv("PATH")) {
		if applet.IsSameFile(onPath, dir) {
			return
		}
	}

	fmt.Fprintf(s.Err, "hint: %s is not on your PATH: export PATH=\"%s:$PATH\"\n", dir, dir)
}

// makeLinks makes a link to this binary for each name in dir, and removes links for names that are left
// out. If a file is in the way of any, it returns an error that names all of them.
func (i Command) makeLinks(s console.Streams, dir string, names []string) error {
	target, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %q: %w", dir, err)
	}
	defer hintIfNotOnPath(s, dir)

	outcomes := map[string]int{}
	var refused []error
	for _, name := range names {
		done, err := i.makeLink(target, filepath.Join(dir, name))
		if err != nil {
			refused = append(refused, err)
			continue
		}
		outcomes[done]++
	}

	if len(refused) > 0 {
		return console.Hint(errors.Join(refused...), "--force replaces these files")
	}
	if err := i.removeLeftOut(target, dir); err != nil {
		return err
	}

	fmt.Fprintf(s.Out, "%s: %d names lead to %s%s\n", dir, len(names), target, describeOutcomes(outcomes))
	if dir != jujudDir && dir != jujuExecDir {
		i.printJuju(s, dir)
		fmt.Fprintln(s.Out, "next: bijou quickstart shows everything on this host; bijou juju bootstrap makes a model")
	}
	return nil
}

// removeLeftOut removes links that an earlier call has made for names that are now left out, since a shell
// would still find them.
func (i Command) removeLeftOut(target, dir string) error {
	for _, name := range i.Without {
		link := filepath.Join(dir, name)
		to, err := os.Readlink(link)
		if err != nil || to != target {
			continue
		}
		if err := os.Remove(link); err != nil {
			return fmt.Errorf("cannot remove the link %q: %w", link, err)
		}
	}

	return nil
}

// describeOutcomes returns in brackets how many links were made, replaced or left.
func describeOutcomes(outcomes map[string]int) string {
	var texts []string
	for _, done := range []string{linked, linkedAnew, linkReplaced, linkedAlready} {
		if n := outcomes[done]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, done))
		}
	}

	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// printJuju tells bijou's juju from Canonical's.
func (i Command) printJuju(s console.Streams, dir string) {
	other, first := applet.FindOther("juju")
	switch {
	case slices.Contains(i.Without, "juju") && other != "":
		fmt.Fprintf(s.Out, "juju stays %s, which is not bijou's; bijou's is: bijou juju\n", other)
	case slices.Contains(i.Without, "juju"):
		fmt.Fprintln(s.Out, "juju is left out; bijou's is: bijou juju")
	case other != "" && first:
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's; a shell finds %s first: call bijou juju, or --without juju\n", dir, other)
	case other != "":
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's, which is %s: --without juju leaves that the name\n", dir, other)
	default:
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's\n", dir)
	}
}

// What becomes of a link.
const (
	linked        = "new"
	linkedAnew    = "linked anew"
	linkReplaced  = "in place of other files"
	linkedAlready = "there already"
)

// makeLink makes one link, and reports what it did. It returns an error if a file of another program is in
// the way, unless --force is given.
func (i Command) makeLink(target, link string) (done string, err error) {
	if applet.IsSameFile(target, link) {
		return i.updateLink(target, link)
	}

	switch ours, err := isBijouLink(link); {
	case errors.Is(err, fs.ErrNotExist):
		return linked, home.Symlink(target, link)
	case err != nil:
		return "", fmt.Errorf("cannot look at %q: %w", link, err)
	case ours:
		return linkedAnew, home.Symlink(target, link)
	case i.Force:
		return linkReplaced, home.Symlink(target, link)
	}

	return "", fmt.Errorf("cannot link %q: it is a file of another program", link)
}

// updateLink makes a link point to the target, and reports what it did. It does not touch the binary itself.
func (i Command) updateLink(target, link string) (done string, err error) {
	switch to, err := os.Readlink(link); {
	case err != nil: // the binary itself
		return linkedAlready, nil
	case to == target:
		return linkedAlready, nil
	}

	return linkedAnew, home.Symlink(target, link)
}

// isBijouLink reports whether some bijou made the link: its target is called like a bijou
// binary, whether it exists or not.
func isBijouLink(link string) (bool, error) {
	to, err := os.Readlink(link)
	if errors.Is(err, syscall.EINVAL) { // it is no link
		return false, nil
	}
	return err == nil && applet.IsBijouName(filepath.Base(to)), err
}

// Removal is the command line of `bijou uninstall`.
type Removal struct{ places }

// Run removes links to this binary or unit files, and prints one line for each.
func (r Removal) Run(c *applet.Call) error {
	return r.visit(c, "Remove the links to this program in %s", r.removeUnitFiles, removeLinks)
}

// removeLinks removes the links to this binary. It does not touch the binary, or links to a different one.
func removeLinks(s console.Streams, dir string, names []string) error {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}

	removed := 0
	for _, name := range names {
		link := filepath.Join(dir, name)
		switch to, linkErr := os.Readlink(link); {
		case errors.Is(linkErr, fs.ErrNotExist):
			// There is no such link.
		case linkErr != nil || to != binary && !applet.IsSameFile(link, binary):
			fmt.Fprintf(s.Err, "%s stays: it is no link to %s\n", link, binary)
		default:
			linkErr = os.Remove(link)
			if linkErr == nil {
				fmt.Fprintf(s.Out, "%s: removed\n", link)
				removed++
			}
			err = errors.Join(err, linkErr)
		}
	}

	if removed == 0 && err == nil {
		fmt.Fprintf(s.Err, "nothing was removed: %s has no link to %s\n", dir, binary)
	}
	if dir == jujudDir {
		_ = os.Remove(dir) // which fails where something is left
	}
	return err
}

// removeUnitFiles removes the unit files that the flags name, and prints each.
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
