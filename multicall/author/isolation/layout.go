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

// layout creates the tree of files that isolated processes see. It uses these directories below dir: root
// becomes /, overlayfs keeps changes in written and work, and files contains copies of single files.
type layout struct {
	dir    string
	mounts []string // the host's mounts, sorted
	unseen []string // files that the processes cannot see, with the reasons
}

// build mounts the tree that isolated processes see, and makes it the root of this process.
func (l *layout) build() error {
	// Otherwise the host would see the following mounts.
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
	// In the new root, dir has the same path as on the host.
	if err := bind(l.dir, root+l.dir); err != nil {
		return err
	}

	return enterRoot(root)
}

// enterRoot makes the mount at the directory the root of this process, and unmounts the previous root.
func enterRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// Afterwards the previous root is mounted over the new one, so that "." can be unmounted.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot unmount the old root file system: %w", err)
	}

	return os.Chdir("/")
}

// lay makes target a view of the directory path: a writable overlay of the directory, and one of each mount below
// the directory. A path that cannot have an overlay gets the view of layOther. But if a directory with mounts below
// it cannot have an overlay, as for users other than root, lay makes a view of each of its entries. It does the same
// for the root directory. The directories /proc, /sys and /dev get special views.
func (l *layout) lay(path, target string) error {
	switch path {
	case l.dir:
		// build mounts this directory.
		return nil
	case "/proc":
		return mountProcesses(target)
	case "/sys":
		return showReadOnly(path, target)
	case "/dev":
		return mountDevices(target)
	case "/":
		return l.layEntries(path, target)
	}

	mounts := l.mountsBelow(path)
	if err := l.overlay(path, target); err != nil {
		if len(mounts) > 0 {
			return l.layEntries(path, target)
		}
		return l.layOther(path, target) // a read-only view
	}

	// An overlay does not show the mounts below its directory.
	for _, mount := range mounts {
		mountTarget := target + strings.TrimPrefix(mount, path)
		if l.overlay(mount, mountTarget) == nil {
			continue
		}
		if err := l.layOther(mount, mountTarget); err != nil {
			return err
		}
	}

	return nil
}

// mountsBelow returns the mounts below a path.
func (l *layout) mountsBelow(path string) (below []string) {
	prefix := strings.TrimSuffix(path, "/") + "/"
	for _, mount := range l.mounts {
		// The mount "/" has the prefix "/", but is not below itself.
		if strings.HasPrefix(mount, prefix) && mount != path {
			below = append(below, mount)
		}
	}

	return below
}

// layEntries makes target a directory with a separate view of each entry of path. If it cannot list the
// entries, it notes that in l.unseen.
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

// layEntry makes path visible at target. It lays directories and files, and copies symlinks. kind is the type of
// path. Anything else, such as a socket, a pipe or a device, is left out.
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

	// Sockets and pipes lead to the host's programs.
	return nil
}

// layOther makes target a view of a path that cannot have an overlay. A file becomes a writable copy. A
// directory becomes read-only. layOther never fails. If it cannot make the view, it notes that in l.unseen.
func (l *layout) layOther(path, target string) error {
	if err := l.tryLayOther(path, target); err != nil {
		l.unseen = append(l.unseen, fmt.Sprintf("%s: %v", path, err))
	}
	return nil
}

// tryLayOther makes the view of layOther: a writable copy of a file, or a read-only view of a directory. It does
// nothing for any other path. Unlike layOther, it returns its error.
func (l *layout) tryLayOther(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}

	switch {
	case info.Mode().IsRegular():
		return l.layFile(path, target)
	case info.IsDir():
		return showReadOnly(path, target)
	}

	return nil
}

// maxFileCopy is the size, in bytes, above which a file has no copy, since copies are in memory. The files are usually
// small, for example a container's /etc/hosts, but /swapfile is not.
const maxFileCopy = 16 << 20

// layFile mounts a writable copy of a file at target. If the file is larger than maxFileCopy, or if this user must not
// read it, layFile mounts nothing, and notes that in l.unseen.
func (l *layout) layFile(path, target string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrPermission) {
		l.unseen = append(l.unseen, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxFileCopy {
		l.unseen = append(l.unseen, fmt.Sprintf("%s: it has %d bytes; the limit is %d", path, info.Size(), maxFileCopy))
		return nil
	}

	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		l.unseen = append(l.unseen, err.Error())
		return nil
	}
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

// overlay mounts the directory path at target, so that changes at target stay in memory. It returns an error
// if path is not a directory, or if the kernel refuses the overlay.
func (l *layout) overlay(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}

	upper := filepath.Join(l.dir, "written", path)
	// Because of .work, the work directory of a mount below path is not inside this one.
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
	// Users other than root can mount only with userxattr, which older kernels do not have.
	if unix.Mount("overlay", target, "overlay", 0, options+",userxattr") == nil {
		return nil
	}

	return unix.Mount("overlay", target, "overlay", 0, options)
}

// mountProcesses mounts a /proc that shows only the isolated processes. The files in it that change the
// kernel's settings are read-only.
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

// mountDevices creates a /dev with the devices that every program expects, new terminals, and a new /dev/shm.
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

	symlinks := map[string]string{
		"fd":     "/proc/self/fd",
		"stdin":  "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2",
		"ptmx":   "pts/ptmx",
	}
	for name, destination := range symlinks {
		if err := os.Symlink(destination, filepath.Join(target, name)); err != nil {
			return err
		}
	}

	return nil
}

// showReadOnly mounts the directory path read-only at target, with all mounts below path. If target is path itself,
// which can then also be a file, path becomes read-only.
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

	// MS_RDONLY applies to one mount at a time.
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
	// Of these flags, only relatime has a different bit in statfs(2) and mount(2).
	if st.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", mount, "", flags|unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// mountMemory mounts a file system in memory at path. It creates the directory path, and its parents, if they
// are missing.
func mountMemory(path, options string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		return fmt.Errorf("cannot mount a tmpfs at %s: %w", path, err)
	}

	return nil
}

// bind shows a file or a directory at a second path, target. It creates target if it is missing.
func bind(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := makeMountPoint(target, info.IsDir()); err != nil {
		return err
	}

	if err := unix.Mount(path, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount %s: %w", path, err)
	}
	return nil
}

// makeMountPoint creates a directory and its parents, or an empty file in an existing directory. It keeps what
// exists already.
func makeMountPoint(path string, isDir bool) error {
	if isDir {
		return os.MkdirAll(path, 0o755)
	}

	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// makeDirectory creates a directory, and its parents, if they are missing. The directory then has exactly the
// permissions of mode, regardless of the umask.
func makeDirectory(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, mode&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid))
}
