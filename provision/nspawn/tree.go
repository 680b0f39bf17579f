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

// packages come on top of the least of Debian: what a machine runs by, and what charms
// expect, since Ubuntu's cloud images have it. treeVersion changes with them.
const (
	packages = "systemd,systemd-sysv,dbus,iproute2,iputils-ping,procps,ca-certificates," +
		"python3,python3-yaml,python3-apt,sudo,curl,lsb-release"
	treeVersion = "-2"
)

func isSeparator(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// extraPackages returns the packages that nspawn.packages adds to the tree, sorted.
func extraPackages(config map[string]string) ([]string, error) {
	names := strings.FieldsFunc(config["packages"], isSeparator)
	slices.Sort(names)
	for _, name := range names {
		if !nameForm().MatchString(name) {
			return nil, fmt.Errorf("nspawn.packages has %q: want names of Debian packages, as in git,jq", name)
		}
	}

	return slices.Compact(names), nil
}

// nameForm matches a series and a package: one plain word, since it becomes a path.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[a-z0-9][a-z0-9._+-]*\z`)
})

// ensureTree returns the directory tree that the machine boots from. A machine that has booted before keeps
// its tree, since its own files lie over that one. Otherwise it makes the tree of any series that
// debootstrap knows. All environments that want the same packages share a tree.
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
	if before, err := os.Readlink(filepath.Join(p.dir, p.instanceID(machine), "base")); err == nil &&
		filepath.Dir(before) == filepath.Dir(dir) && treeHas(before, ".") {
		return before, checkTree(before, series)
	}
	if treeHas(dir, ".") {
		return dir, checkTree(dir, series)
	}

	if err := p.makeTree(ctx, dir, series, added, boot); err != nil {
		return "", fmt.Errorf("cannot make the tree of %s that machines boot from: %w", series, err)
	}

	return dir, checkTree(dir, series)
}

// givenTree returns the tree that settings name for the series; "" if the provider must make one. With a
// mirror for the series it must, unless the series has a tree of its own.
func givenTree(config map[string]string, series string) string {
	if config["mirror."+series] != "" {
		return config["tree."+series]
	}
	return cmp.Or(config["tree."+series], config["tree"])
}

// treeFolder returns where a tree of that series is that has these packages besides.
func treeFolder(series string, added []string) string {
	dir := filepath.Join(cacheFolder(), "trees", series+treeVersion)
	if len(added) > 0 {
		dir += "-" + osutil.Digest([]byte(strings.Join(added, ",")))[:8]
	}
	return dir
}

// cacheFolder returns the folder of the trees, which all environments share.
func cacheFolder() string {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bijou")
	}
	return "/var/cache/bijou"
}

// checkTree returns an error if the directory cannot boot a system, or has one of another series.
func checkTree(dir, series string) error {
	for _, file := range []string{"etc/os-release", "lib/systemd/systemd", "usr/bin/dpkg", "bin/sh"} {
		if !treeHas(dir, file) {
			return fmt.Errorf(
				"the tree of files in %q that machines boot from is broken: it has no %s: remove that folder, and the next start makes a new one",
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

// treeHas reports whether the tree has the file.
func treeHas(dir, file string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()

	_, err = root.Lstat(file)
	if err != nil { // by a link that begins at the tree's own root, as /lib may be
		_, err = root.Lstat("usr/" + file)
	}
	return err == nil
}

func refuseSeries(series, own string) error {
	return fmt.Errorf(
		"machines can only have the series %q, not %q: deploy with --series %s, or bootstrap with --default-series %s",
		own, series, own, own,
	)
}

// lockTrees locks the folder of trees. It says on boot that it waits while another start makes one.
func lockTrees(ctx context.Context, folder string, boot io.Writer) (*os.File, error) {
	lock, err := osutil.TryLockDir(folder)
	if err != nil || lock != nil {
		return lock, err
	}

	fmt.Fprintln(boot, "waiting for the tree that a different start makes")
	return osutil.LockDir(ctx, folder)
}

// makeTree makes the tree of a series at dir, unless another process has made it meanwhile. It makes the
// tree beside dir and renames it once all of it is on the disk.
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
		return osutil.SyncDir(parent) // the process that made it may have been killed before it synced the folder
	}

	draft := filepath.Join(parent, ".draft")
	err = osutil.RemoveAllBut(draft, "") // a start that was cut off has left it
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := runDebootstrap(ctx, draft, r, mirror, added, boot); err != nil {
		return errors.Join(err, os.RemoveAll(draft))
	}

	// A tree with the final name counts as whole, so that all of it must be on the disk before.
	if err := osutil.SyncFileSystem(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil {
		return err
	}

	return osutil.SyncDir(parent)
}

// runDebootstrap makes a tree in dir by debootstrap, and prints its progress to boot.
func runDebootstrap(ctx context.Context, dir string, r release, mirror string, added []string, boot io.Writer) error {
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	fmt.Fprintf(
		boot, "making the tree of %s that machines boot from; this is done once, and takes a minute or two\n",
		r.series,
	)

	args := r.args(dir, mirror, append(strings.Split(packages, ","), added...))
	c := exec.CommandContext(ctx, "debootstrap", args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	c.Env = childenv.New(os.Environ(), childenv.Program)
	if proxy := aptProxy(ctx); proxy != "" {
		c.Env = append(c.Env, "http_proxy="+proxy)
	}

	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()

	c.Stdout = in
	c.Stderr = in
	err = c.Start()
	in.Close()
	if err != nil {
		return err
	}

	last := printProgress(out, boot)
	if err := c.Wait(); err != nil {
		return fmt.Errorf("debootstrap: %w: %s", err, last)
	}

	return cleanTree(dir)
}

// printProgress prints every tenth line of debootstrap's output to boot, and returns the last line.
func printProgress(out io.Reader, boot io.Writer) (last string) {
	steps := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = strings.TrimSpace(lines.Text())
		if last == "" {
			continue
		}
		if steps++; steps%10 == 1 {
			fmt.Fprintf(boot, "tree, step %d: %s\n", steps, strings.TrimPrefix(last, "I: "))
		}
	}

	return last
}

// cleanTree removes from a new tree the files that each machine has for itself, or that none needs.
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

// aptMirror returns the mirror of the series that this host's apt uses; "" leaves the choice to
// debootstrap.
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

func aptProxy(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%v%n", "Acquire::http::Proxy").Output()
	return strings.TrimSpace(string(out))
}
