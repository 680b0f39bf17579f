package nspawn

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"bijou/provision/provider"
	"bijou/state/childenv"
	"bijou/state/osutil"
)

// packages are installed in addition to a minimal Debian: packages that a machine needs to run, and
// packages that charms expect because Ubuntu's cloud images have them. treeVersion must change if packages
// changes.
const (
	packages = "systemd,systemd-sysv,dbus,iproute2,iputils-ping,procps,ca-certificates," +
		"python3,python3-yaml,python3-apt,sudo,curl,lsb-release"
	treeVersion = "-2"
)

// isSeparator reports whether the character separates words in a setting: a comma or space.
func isSeparator(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// extraPackages returns the packages that the setting nspawn.packages adds to the tree, sorted and without
// duplicates. It returns an error for a word that cannot be the name of a package.
func extraPackages(config map[string]string) ([]string, error) {
	names := strings.FieldsFunc(config["packages"], isSeparator)
	slices.Sort(names)
	for _, name := range names {
		if !nameForm().MatchString(name) {
			return nil, fmt.Errorf("nspawn.packages has %q: want names of Debian packages, such as git,jq", name)
		}
	}

	return slices.Compact(names), nil
}

// nameForm matches a series or a package. It allows only names that are safe in a path.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[a-z0-9][a-z0-9._+-]*\z`)
})

// ensureTree returns the directory tree from which the machine boots. If the settings name a tree, it returns
// that tree. A machine that has booted before keeps its tree if that is still in the cache, since its own files
// are an overlay over that tree. Otherwise ensureTree returns the tree of the series in the cache, and creates
// it with debootstrap if it is missing. All environments with the same packages share that tree. ensureTree
// returns an error if checkTree refuses the tree.
func (p *Provider) ensureTree(ctx context.Context, machine, series string, boot io.Writer) (string, error) {
	if given := givenTree(p.env.Config, series); given != "" {
		return given, checkTree(given, series)
	}
	if !nameForm().MatchString(series) {
		return "", fmt.Errorf("%q is not a series", series)
	}

	added, err := extraPackages(p.env.Config)
	if err != nil {
		return "", err
	}

	dir := treeFolder(series, added)
	// The symlink base leads to the tree of the machine's last boot, even if that boot failed. Before the first
	// boot, previous is empty.
	previous, _ := os.Readlink(filepath.Join(p.dir, p.instanceID(machine), "base"))
	isInCache := filepath.Dir(previous) == filepath.Dir(dir)
	// The operator may have removed the machine's tree from the cache.
	if isInCache && treeHas(previous, ".") {
		return previous, checkTree(previous, series)
	}
	if treeHas(dir, ".") {
		return dir, checkTree(dir, series)
	}

	if err := p.makeTree(ctx, dir, series, added, boot); err != nil {
		return "", fmt.Errorf("cannot create the tree of %s from which machines boot: %w", series, err)
	}

	return dir, checkTree(dir, series)
}

// givenTree returns the tree that the settings name for the series: tree.SERIES, or otherwise tree. It returns
// "" if the provider must create a tree. A mirror for the series takes precedence over the setting tree.
func givenTree(config map[string]string, series string) string {
	hasMirror := config["mirror."+series] != ""
	if hasMirror {
		return config["tree."+series]
	}
	return cmp.Or(config["tree."+series], config["tree"])
}

// treeFolder returns the path in the cache of the series' tree with the added packages. The path differs for
// each set of packages.
func treeFolder(series string, added []string) string {
	dir := filepath.Join(cacheFolder(), "trees", series+treeVersion)
	if len(added) > 0 {
		dir += "-" + osutil.Digest([]byte(strings.Join(added, ",")))[:8]
	}
	return dir
}

// cacheFolder returns the cache directory with the trees, which all environments share.
func cacheFolder() string {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bijou")
	}
	return "/var/cache/bijou"
}

// checkTree returns an error if the directory lacks a file that machines need, or if its system is not of the
// given series.
func checkTree(dir, series string) error {
	for _, file := range []string{"etc/os-release", "lib/systemd/systemd", "usr/bin/dpkg", "bin/sh"} {
		if !treeHas(dir, file) {
			return fmt.Errorf(
				"the tree in %q, from which machines boot, is broken: %s is missing; remove that directory, and the next start creates a new one",
				dir, file,
			)
		}
	}

	own, err := provider.SeriesOf(dir)
	if err != nil {
		return err
	}
	if own != series {
		return refuseSeries(series, own)
	}

	return nil
}

// treeHas reports whether the tree has the file, at this path or below usr/. For the file ".", it reports
// whether the tree exists.
func treeHas(dir, file string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()

	if _, err := root.Lstat(file); err == nil {
		return true
	}

	// A directory such as lib may be an absolute symlink to /usr/lib, which os.Root does not follow.
	_, err = root.Lstat("usr/" + file)
	return err == nil
}

// refuseSeries returns the error for a machine whose series differs from own, the series of the tree.
func refuseSeries(series, own string) error {
	return fmt.Errorf(
		"machines can only have the series %q, not %q: deploy with --series %s, or bootstrap with --default-series %s",
		own, series, own, own,
	)
}

// lockTrees locks the directory of trees. If another process is creating a tree, lockTrees prints a line to
// boot, and waits for that process.
func lockTrees(ctx context.Context, folder string, boot io.Writer) (*os.File, error) {
	lock, err := osutil.TryLockDir(folder)
	if err != nil {
		return lock, err
	}
	if lock != nil {
		return lock, nil
	}

	fmt.Fprintln(boot, "waiting for the tree, which another process creates")
	return osutil.LockDir(ctx, folder)
}

// makeTree creates the tree of a series at dir, with the added packages, unless another process has created
// it in the meantime. It creates the tree next to dir, and renames the tree once it is complete and synced.
func (p *Provider) makeTree(ctx context.Context, dir, series string, added []string, boot io.Writer) error {
	r, err := findRelease(series)
	if err != nil {
		return err
	}
	if err := r.checkKeyring(); err != nil {
		return err
	}
	mirror, err := r.findMirror(ctx, p.env.Config)
	if err != nil {
		return err
	}

	parent := filepath.Dir(dir)
	lock, err := lockTrees(ctx, parent, boot)
	if err != nil {
		return err
	}
	defer lock.Close()

	if _, err := os.Stat(dir); err == nil {
		// The process that renamed the tree may have been killed before it synced the directory.
		return osutil.SyncDir(parent)
	}

	// An interrupted start may have left a draft.
	draft := filepath.Join(parent, ".draft")
	err = osutil.RemoveAllBut(draft, "") // "" keeps no entry, but the directory stays
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := runDebootstrap(ctx, draft, r, mirror, added, boot); err != nil {
		return errors.Join(err, os.RemoveAll(draft))
	}

	// A tree with the final name counts as complete, so all of it must be on the disk first.
	if err := osutil.SyncFileSystem(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil {
		return err
	}

	return osutil.SyncDir(parent)
}

// runDebootstrap creates a tree of the release in dir with debootstrap, and prepares it for machines. It
// prints the progress to boot. The tree has the usual packages and the added ones. If mirror is "",
// debootstrap chooses the mirror.
func runDebootstrap(ctx context.Context, dir string, r release, mirror string, added []string, boot io.Writer) error {
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	fmt.Fprintf(
		boot, "creating the tree of %s, from which machines boot; this happens only once, and takes a minute or two\n",
		r.series,
	)

	args := r.args(dir, mirror, append(strings.Split(packages, ","), added...))
	c := exec.CommandContext(ctx, "debootstrap", args...)
	// The end of ctx kills debootstrap and the programs that it has started.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	c.Env = childenv.New(os.Environ(), childenv.Program)
	if proxy := aptProxy(ctx); proxy != "" {
		c.Env = append(c.Env, "http_proxy="+proxy)
	}

	output, writeEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer output.Close()

	c.Stdout = writeEnd
	c.Stderr = writeEnd
	err = c.Start()
	// Only debootstrap may keep the write end open, so that the output ends with debootstrap.
	writeEnd.Close()
	if err != nil {
		return err
	}

	lastLine := printProgress(output, boot)
	if err := c.Wait(); err != nil {
		return fmt.Errorf("debootstrap: %w: %s", err, lastLine)
	}

	return cleanTree(dir)
}

// printProgress prints every tenth line of debootstrap's output to boot, and returns the last line. It reads
// the output to its end, since debootstrap would otherwise block.
func printProgress(output io.Reader, boot io.Writer) (last string) {
	steps := 0
	for lines := bufio.NewReader(output); ; {
		// A very long line comes in parts, which count as lines.
		line, _, err := lines.ReadLine()
		if err != nil {
			return last
		}

		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		last = text
		if steps++; steps%10 == 1 {
			fmt.Fprintf(boot, "tree, step %d: %s\n", steps, strings.TrimPrefix(last, "I: "))
		}
	}
}

// cleanTree prepares a new tree for machines. It removes the downloaded packages, empties machine-id so that
// each machine has its own, and lets all users enter the tree.
func cleanTree(dir string) error {
	packages, err := filepath.Glob(filepath.Join(dir, "var/cache/apt/archives/*.deb"))
	if err != nil {
		return err
	}

	for _, f := range packages {
		if err := os.Remove(f); err != nil {
			return err
		}
	}

	if err := os.WriteFile(filepath.Join(dir, "etc/machine-id"), nil, 0o444); err != nil {
		return err
	}

	return os.Chmod(dir, 0o755)
}

// aptMirror returns the mirror of the series that this host's apt uses. It returns "" if apt uses no mirror
// of the series, or if apt-get fails.
func aptMirror(ctx context.Context, series string) string {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format",
		"$(CODENAME) $(REPO_URI)").Output()
	if err != nil {
		return ""
	}

	for line := range strings.Lines(string(out)) {
		if name, uri, _ := strings.Cut(strings.TrimSpace(line), " "); name == series {
			return uri
		}
	}

	return ""
}

// aptProxy returns the HTTP proxy that this host's apt uses, or "" if it uses none.
func aptProxy(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%v%n", "Acquire::http::Proxy").Output()
	return strings.TrimSpace(string(out))
}
