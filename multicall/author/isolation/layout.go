package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// layout makes the tree of files that isolated processes see. It does so below dir: root becomes /, overlayfs
// keeps changes in written and work, and files has copies of files that are mounts themselves.
type layout struct {
	dir    string
	mounts []string // the host's mounts, sorted
	unseen []string // files that the processes cannot see, with the reasons
}

// build mounts everything and makes it the root of this process.
func (l *layout) build() error {
	// Without this the host would see the mounts that follow.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot separate the mounts from the host's: %w", err)
	}
	if err := mountMemory(l.dir, "mode=755"); err != nil {
		return err
	}

	root := filepath.Join(l.dir, "root")
	if err := mountMemory(root, "mode=755"); err != nil {
		return err
	}

	if err := l.lay("/", root); err != nil {
		return err
	}

	// Hide the sockets of the host's own agents.
	if err := mountMemory(filepath.Join(root, "run", "bijou"), "mode=755"); err != nil {
		return err
	}
	if err := bind(l.dir, root+l.dir); err != nil {
		return err
	}

	return enterRoot(root)
}

// enterRoot makes a directory the root, and forgets the former one.
func enterRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot unmount the old root file system: %w", err)
	}

	return os.Chdir("/")
}

// lay makes target a writable view of path. A user other than root cannot mount an overlay over a directory that
// has mounts below it. In that case lay makes a view of each entry of the directory.
func (l *layout) lay(path, target string) error {
	switch path {
	case l.dir:
		return nil
	case "/proc":
		return mountProcesses(target)
	case "/sys":
		return showReadOnly(path, target)
	case "/dev":
		return mountDevices(target)
	}

	below := l.mountsBelow(path)
	if path == "/" {
		return l.layEntries(path, target)
	}
	if err := l.overlay(path, target); err != nil {
		if len(below) > 0 {
			return l.layEntries(path, target)
		}
		return l.layOther(path, target)
	}

	for _, mount := range below {
		inside := target + strings.TrimPrefix(mount, path)
		if l.overlay(mount, inside) == nil {
			continue
		}
		if err := l.layOther(mount, inside); err != nil {
			return err
		}
	}

	return nil
}

// mountsBelow returns the mounts below a path.
func (l *layout) mountsBelow(path string) (below []string) {
	prefix := strings.TrimSuffix(path, "/") + "/"
	for _, mount := range l.mounts {
		if strings.HasPrefix(mount, prefix) && mount != path {
			below = append(below, mount)
		}
	}

	return below
}

// layEntries lays each entry of a directory separately, so that some can differ.
func (l *layout) layEntries(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := makeDirectory(target, info.Mode()); err != nil {
		return err
	}

	entries, err := os.ReadDir(path)
	if err != nil {
		l.unseen = append(l.unseen, err.Error())
		return nil
	}

	for _, e := range entries {
		if err := l.layEntry(filepath.Join(path, e.Name()), filepath.Join(target, e.Name()), e.Type()); err != nil {
			return err
		}
	}

	return nil
}

func (l *layout) layEntry(path, target string, kind fs.FileMode) error {
	switch {
	case kind.IsDir():
		return l.lay(path, target)
	case kind.IsRegular():
		return l.layFile(path, target)
	case kind&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	}

	// Leave out sockets and pipes, which lead to the host's programs.
	return nil
}

// layOther makes target a view of a path that overlayfs cannot cover. A file that is a mount becomes writable. A
// directory that overlayfs does not support becomes read-only.
func (l *layout) layOther(path, target string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular():
		err = l.layFile(path, target)
	case err == nil && info.IsDir():
		err = showReadOnly(path, target)
	}
	if err != nil {
		l.unseen = append(l.unseen, fmt.Sprintf("%s: %v", path, err))
	}

	return nil
}

// layFile mounts a writable copy of a file on target. It reads the whole file, since the files that are mounts,
// such as a container's /etc/hosts, are small. If the file cannot be read, layFile notes that in l.unseen.
func (l *layout) layFile(path, target string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		l.unseen = append(l.unseen, err.Error())
		return nil
	}
	if err != nil {
		return err
	}

	info, err := os.Stat(path)
	if err != nil {
		return err
	}

	file := filepath.Join(l.dir, "files", path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(file, info.Mode()); err != nil {
		return err
	}

	return bind(file, target)
}

// overlay mounts the path at the target so that changes there stay in memory.
func (l *layout) overlay(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}

	upper := filepath.Join(l.dir, "written", path)
	work := filepath.Join(l.dir, "work", path, ".work")

	if err := makeDirectory(upper, info.Mode()); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}

	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`)
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s",
		escape.Replace(path), escape.Replace(upper), escape.Replace(work))
	// Users other than root can only mount with userxattr.
	if unix.Mount("overlay", target, "overlay", 0, options+",userxattr") == nil {
		return nil
	}

	return unix.Mount("overlay", target, "overlay", 0, options)
}

// mountProcesses mounts a /proc that shows only the isolated processes. Its parts that change the kernel are
// read-only.
func mountProcesses(target string) error {
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}

	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs"} {
		path := filepath.Join(target, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := showReadOnly(path, path); err != nil {
			return err
		}
	}

	return nil
}

// mountDevices makes a /dev with the devices that every program expects, and with its own terminals and /dev/shm.
func mountDevices(target string) error {
	if err := mountMemory(target, "mode=755"); err != nil {
		return err
	}

	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind("/dev/"+name, filepath.Join(target, name)); err != nil {
			return err
		}
	}

	terminals := filepath.Join(target, "pts")
	if err := os.Mkdir(terminals, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", terminals, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("cannot mount /dev/pts: %w", err)
	}
	if err := mountMemory(filepath.Join(target, "shm"), "mode=1777"); err != nil {
		return err
	}

	links := map[string]string{
		"fd":     "/proc/self/fd",
		"stdin":  "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2",
		"ptmx":   "pts/ptmx",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(target, name)); err != nil {
			return err
		}
	}

	return nil
}

// showReadOnly mounts the path read-only at the target, with all mounts below it.
func showReadOnly(path, target string) error {
	if path != target {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	}

	if err := unix.Mount(path, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("cannot mount %s: %w", path, err)
	}

	mounts, err := readMounts()
	if err != nil {
		return err
	}

	for _, mount := range mounts {
		if mount != target && !strings.HasPrefix(mount, target+"/") {
			continue
		}
		if err := remountReadOnly(mount); err != nil {
			return fmt.Errorf("cannot make %s read-only: %w", mount, err)
		}
	}

	return nil
}

// remountReadOnly makes a mount read-only. It keeps the mount's other flags, which a user may not remove.
func remountReadOnly(mount string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(mount, &st); err != nil {
		return err
	}

	flags := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if st.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", mount, "", flags|unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// mountMemory makes a directory in memory, and also the directories above it if they are missing.
func mountMemory(path, options string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		return fmt.Errorf("cannot mount a tmpfs at %s: %w", path, err)
	}

	return nil
}

// bind shows a file or a directory at a second path, which it makes.
func bind(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}

	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else {
		var f *os.File
		f, err = os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}

	if err := unix.Mount(path, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount %s: %w", path, err)
	}
	return nil
}

// makeDirectory makes a directory with exactly this mode, whatever the umask is.
func makeDirectory(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, mode&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid))
}
