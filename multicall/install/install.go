// Package install has the commands `bijou install` and `bijou uninstall`. They create and remove symlinks for
// the applets, and systemd's unit files.
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

// places are the flags of install that select its files.
type places struct {
	Dir   string `type:"path" placeholder:"DIR" help:"Create the symlinks in this directory; default: /usr/local/bin for root, and ~/.local/bin for other users."`
	Yes   bool   `short:"y" help:"Do not ask about the directory if --dir is not given."`
	Jujud bool   `help:"Create the symlinks /var/lib/juju/tools/machine-0/jujud, /usr/bin/juju-exec and /usr/bin/juju-run, which charms call; only for root. Other symlinks only with --dir."`

	Systemd    bool   `help:"Write systemd's unit files of a model; symlinks only with --dir."`
	Env        string `type:"path" placeholder:"DIR" help:"Write unit files for the model in this directory, with --systemd; default: the model in use."`
	Machine    string `placeholder:"ID" help:"Write only the unit file of machine ID's agent, for a host of its own; with --systemd."`
	Neco       bool   `help:"Write the unit files of neco-updater and neco-worker, whose symlinks are beside this binary or in --dir; with --systemd."`
	SystemdDir string `type:"path" placeholder:"DIR" help:"Write the unit files to this directory; default: /etc/systemd/system."`
}

// removalPlaces are the flags of uninstall. They are those of [places], with the help of this command.
type removalPlaces struct {
	Dir   string `type:"path" placeholder:"DIR" help:"Remove the symlinks from this directory; default: /usr/local/bin for root, and ~/.local/bin for other users."`
	Yes   bool   `short:"y" help:"Do not ask about the directory if --dir is not given."`
	Jujud bool   `help:"Remove the symlinks /var/lib/juju/tools/machine-0/jujud, /usr/bin/juju-exec and /usr/bin/juju-run; only for root. Other symlinks only with --dir."`

	Systemd    bool   `help:"Remove systemd's unit files of a model; symlinks only with --dir."`
	Env        string `type:"path" placeholder:"DIR" help:"Remove the unit files for the model in this directory, with --systemd; default: the model in use."`
	Machine    string `placeholder:"ID" help:"Remove only the unit file of machine ID's agent; with --systemd."`
	Neco       bool   `help:"Remove the unit files of neco-updater and neco-worker; with --systemd."`
	SystemdDir string `type:"path" placeholder:"DIR" help:"Remove the unit files from this directory; default: /etc/systemd/system."`
}

// visit processes the files that the flags select. It calls units for unit files, and links once for each
// directory of symlinks. Without --dir, it calls links for the default directory only if the flags select neither
// unit files nor jujud. Before it does so, the user must confirm question, in which %s stands for the default
// directory, unless --yes is given.
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
	}

	if p.Jujud {
		if err := links(c.Streams, jujudDir, []string{"jujud"}); err != nil {
			return err
		}
		if err := links(c.Streams, jujuExecDir, []string{"juju-exec", "juju-run"}); err != nil {
			return err
		}
	}

	isDefaultDirUnused := isAboutUnits || p.Jujud
	if p.Dir == "" && isDefaultDirUnused {
		return nil
	}

	dir, err := p.chooseDir(c.Streams, question)
	if err != nil {
		return err
	}
	return links(c.Streams, dir, c.Applets)
}

// chooseDir returns the directory of --dir or, after the user has confirmed question, the default directory. With
// --yes, it does not ask. In question, %s stands for the default directory.
func (p places) chooseDir(s console.Streams, question string) (string, error) {
	if p.Dir != "" {
		return p.Dir, nil
	}

	dir, err := defaultDir()
	if err != nil {
		return "", err
	}
	if p.Yes {
		return dir, nil
	}
	return dir, confirmDir(s, fmt.Sprintf(question, dir), dir)
}

// Command is the command line of `bijou install`.
type Command struct {
	places
	Force   bool     `help:"Also replace files of other programs."`
	Without []string `placeholder:"NAME,..." help:"Do not create symlinks with these names, such as juju if Canonical's is installed; bijou NAME calls them."`
}

// Run creates the symlinks and unit files that the flags select, and removes bijou's symlinks with the names in
// --without. It prints a line for each unit file, and the number of symlinks in each directory. For a directory other
// than those of --jujud, it also prints which program the name juju stands for, and the next step.
func (i Command) Run(c *applet.Call) error {
	for _, name := range i.Without {
		if !slices.Contains(c.Applets, name) {
			return console.Usage(fmt.Errorf("--without %s: there is no applet of that name", name))
		}
	}

	// The result contains %s, which visit replaces with the default directory.
	question := fmt.Sprintf("Create %d symlinks in %%s", len(i.wanted(c.Applets)))
	return i.visit(c, question, i.installUnitFiles, i.makeLinks)
}

// wanted returns the names that --without does not leave out.
func (i Command) wanted(names []string) []string {
	isLeftOut := func(name string) bool { return slices.Contains(i.Without, name) }
	return slices.DeleteFunc(slices.Clone(names), isLeftOut)
}

// These are the directories of Juju's programs that charms call: its binary on machine 0, and the programs for cron
// jobs and services.
const (
	jujudDir    = "/var/lib/juju/tools/machine-0"
	jujuExecDir = "/usr/bin"
)

// defaultDir returns the directory for the symlinks if --dir is not given.
func defaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/usr/local/bin", nil
	}
	userHome, err := os.UserHomeDir()
	return filepath.Join(userHome, ".local", "bin"), err
}

// confirmDir prompts the operator with the question about the directory. It returns an error if the answer is
// no, or if there is no terminal.
func confirmDir(s console.Streams, question, dir string) error {
	if !console.IsTerminal(s.In) {
		return console.Hint(fmt.Errorf("nothing was done: cannot ask about %s without a terminal", dir),
			"--yes skips the question; --dir DIR uses a different directory")
	}

	if !console.Confirm(s, question) {
		return errors.New("nothing was done")
	}
	return nil
}

// hintIfNotOnPath prints a hint if the directory is not on PATH. It prints none for the directory of jujud.
func hintIfNotOnPath(s console.Streams, dir string) {
	// Charms call jujud by its path.
	if dir == jujudDir {
		return
	}
	for _, onPath := range filepath.SplitList(os.Getenv("PATH")) {
		if applet.IsSameFile(onPath, dir) {
			return
		}
	}

	fmt.Fprintf(s.Err, "hint: %s is not on your PATH: export PATH=\"%s:$PATH\"\n", dir, dir)
}

// makeLinks creates a symlink to this binary in dir for each name, removes symlinks for the names in --without,
// and prints the outcome. If files of different programs are in the way, it creates the other symlinks, removes
// none, and returns an error that names all of these files. It returns any other error at once, since that error
// would repeat for each name. Once dir exists, it calls hintIfNotOnPath at the end, even after an error.
func (i Command) makeLinks(s console.Streams, dir string, names []string) error {
	target, err := applet.ExecutablePath()
	if err != nil {
		return err
	}
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the directory %q: %w", dir, err)
	}
	defer hintIfNotOnPath(s, dir)

	names = i.wanted(names)
	outcomes := map[string]int{}
	var foreignErrs []error
	for _, name := range names {
		outcome, err := i.makeLink(target, filepath.Join(dir, name))
		switch {
		case errors.Is(err, errForeign):
			foreignErrs = append(foreignErrs, err)
		case err != nil:
			return errors.Join(append(foreignErrs, err)...)
		default:
			outcomes[outcome]++
		}
	}

	if len(foreignErrs) > 0 {
		return console.Hint(errors.Join(foreignErrs...), "--force replaces these files")
	}
	if err := i.removeLeftOut(target, dir); err != nil {
		return err
	}

	fmt.Fprintf(s.Out, "%s: %d symlinks to %s%s\n", dir, len(names), target, describeOutcomes(outcomes))
	// Charms call the programs in these two directories, so the operator needs no notes about them.
	if dir != jujudDir && dir != jujuExecDir {
		i.printJuju(s, dir)
		fmt.Fprintln(s.Out, "next: bijou quickstart shows everything on this host; bijou juju bootstrap creates a model")
	}
	return nil
}

// removeLeftOut removes symlinks that an earlier call, possibly of another binary, has created for names that are
// now left out (--without), since a shell would still find them. target is the path of this binary.
func (i Command) removeLeftOut(target, dir string) error {
	for _, name := range i.Without {
		link := filepath.Join(dir, name)
		// A missing or unreadable file is not a symlink of an earlier call.
		existing, _ := os.Readlink(link)
		isOfBijou, _ := isBijouLink(link)
		// isBijouLink does not know this binary if the file was renamed, so also compare the target.
		if !isOfBijou && existing != target {
			continue
		}

		if err := os.Remove(link); err != nil {
			return fmt.Errorf("cannot remove the symlink %q: %w", link, err)
		}
	}

	return nil
}

// describeOutcomes returns, in parentheses after a space, how many symlinks were created, replaced or left
// unchanged. It returns "" if there are no symlinks.
func describeOutcomes(outcomes map[string]int) string {
	var texts []string
	for _, outcome := range []string{linked, linkedAnew, linkReplaced, linkedAlready} {
		if count := outcomes[outcome]; count > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", count, outcome))
		}
	}

	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// printJuju prints whether the name juju stands for bijou's program, for a different one such as Canonical's, or for
// none. It also prints how to call a program that the name does not stand for. dir is the directory of the symlinks.
func (i Command) printJuju(s console.Streams, dir string) {
	isLeftOut := slices.Contains(i.Without, "juju")
	other, isOtherFirst := applet.FindOther("juju")
	switch {
	case isLeftOut && other != "":
		fmt.Fprintf(s.Out, "juju is still %s, which is not bijou's; to call bijou's: bijou juju\n", other)
	case isLeftOut:
		fmt.Fprintln(s.Out, "there is no symlink juju; to call bijou's: bijou juju")
	case other != "" && isOtherFirst:
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's; but a shell finds %s first: call bijou juju, or use --without juju\n", dir, other)
	case other != "":
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's, which is %s; to give Canonical's the name: --without juju\n", dir, other)
	default:
		fmt.Fprintf(s.Out, "the juju in %s is bijou's, not Canonical's\n", dir)
	}
}

// These are the outcomes of the creation of a symlink.
const (
	linked        = "new"
	linkedAnew    = "linked again"
	linkReplaced  = "replaced other files"
	linkedAlready = "already up to date"
)

// errForeign is returned if a file of a different program is in the way of a symlink.
var errForeign = errors.New("the file belongs to another program")

// makeLink makes link a symlink to target, and returns the outcome, such as linked. Unless --force is given, it
// returns an error that wraps errForeign if a file of a different program is in the way.
func (i Command) makeLink(target, link string) (outcome string, err error) {
	// link leads to target already, or is target itself.
	if applet.IsSameFile(target, link) {
		return i.updateLink(target, link)
	}

	isOfBijou, err := isBijouLink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return linked, home.Symlink(target, link)
	case err != nil:
		return "", fmt.Errorf("cannot examine %q: %w", link, err)
	case isOfBijou:
		return linkedAnew, home.Symlink(target, link)
	case i.Force:
		return linkReplaced, home.Symlink(target, link)
	}

	return "", fmt.Errorf("cannot replace %q: %w", link, errForeign)
}

// updateLink makes link, which already leads to the file target, a symlink with exactly the path target. It returns the
// outcome. If link is the binary itself, updateLink changes nothing.
func (i Command) updateLink(target, link string) (outcome string, err error) {
	existing, err := os.Readlink(link)
	isBinary := err != nil // the binary is not a symlink
	if isBinary || existing == target {
		return linkedAlready, nil
	}

	return linkedAnew, home.Symlink(target, link)
}

// isBijouLink reports whether a version of bijou has created the symlink. It looks only at the name of the target,
// which need not exist. It returns false for a file that is not a symlink, and an error if there is no file.
func isBijouLink(link string) (bool, error) {
	target, err := os.Readlink(link)
	// EINVAL means that the file is not a symlink.
	if errors.Is(err, syscall.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return applet.IsBijouName(filepath.Base(target)), nil
}

// Removal is the command line of `bijou uninstall`.
type Removal struct{ removalPlaces }

// Run removes unit files, or the symlinks to this binary, and prints one line for each.
func (r Removal) Run(c *applet.Call) error {
	return places(r.removalPlaces).visit(c, "Remove the symlinks to this program in %s", r.removeUnitFiles, removeLinks)
}

// removeLinks removes from dir the symlinks with these names, and prints each. If a file of that name is not a
// symlink to this binary, it keeps the file, and prints that too. After an error it continues with the next
// symlink, and returns all errors at the end. If dir is the directory of jujud and is empty then, it also removes
// dir.
func removeLinks(s console.Streams, dir string, names []string) error {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return err
	}

	removed := 0
	var removeErrs []error
	for _, name := range names {
		link := filepath.Join(dir, name)
		target, err := os.Readlink(link)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		isOwn := err == nil && (target == binary || applet.IsSameFile(link, binary))
		if !isOwn {
			fmt.Fprintf(s.Err, "%s stays: it is not a symlink to %s\n", link, binary)
			continue
		}

		if err := os.Remove(link); err != nil {
			removeErrs = append(removeErrs, err) // continue with the other symlinks
			continue
		}
		fmt.Fprintf(s.Out, "%s: removed\n", link)
		removed++
	}

	if removed == 0 && len(removeErrs) == 0 {
		fmt.Fprintf(s.Err, "nothing was removed: %s contains no symlink to %s\n", dir, binary)
	}
	if dir == jujudDir {
		_ = os.Remove(dir) // fails if the directory is not empty
	}

	return errors.Join(removeErrs...)
}

// removeUnitFiles removes the unit files that the flags select, and prints the path of each. It keeps files that
// bijou has not created for the same environment or, with --neco, for neco.
func (r Removal) removeUnitFiles(s console.Streams) error {
	set, err := places(r.removalPlaces).selectUnits()
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
