// Package isolation isolates a process and its child processes from the host.
//
// The processes see the host's files. Their changes to files go to a layer over these files, which is in
// memory. They have their own hostname, process ids, System V and POSIX IPC, and /dev/shm. They also have
// their own network, unless the caller allows the host's. /sys and /proc/sys are read-only. When the first
// process ends, the others are killed, and their changes are lost. The processes appear to run as root.
//
// This protects a host from the ordinary effects of programs such as `hostname web` or `modprobe`.
// It does not contain a program that tries to escape.
//
// The package does not depend on charms.
package isolation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hostname is the hostname that isolated processes see.
const Hostname = "charm-test"

// Prepare makes the command run in new namespaces, in which the command must call Enter. If network is true,
// the command uses the host's network. Otherwise it has only a loopback interface. cmd.SysProcAttr must not
// be nil.
func Prepare(cmd *exec.Cmd, network bool) {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if !network {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}

	// Only root can create the other namespaces, so the process becomes root in a new user namespace.
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}

// Enter isolates this process from the host, as the package comment describes. The process must be a command that
// Prepare has prepared, and network must have the same value as for Prepare. The directory dir becomes a directory in
// memory, which also keeps the changes to the host's files. A directory for which this is impossible becomes
// read-only. Enter returns the files and directories that it could not make visible, each with the reason. After an
// error the process is only partly isolated, and must exit.
func Enter(dir string, network bool) (unseen []string, err error) {
	// The first process of a new PID namespace has the PID 1.
	if os.Getpid() != 1 {
		return nil, errors.New("this process has no namespaces of its own")
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}

	if err := unix.Sethostname([]byte(Hostname)); err != nil {
		return nil, fmt.Errorf("cannot set the hostname: %w", err)
	}

	if !network {
		if err := startLoopback(); err != nil {
			return nil, fmt.Errorf("cannot start the loopback interface: %w", err)
		}
	}

	l := layout{dir: dir, mounts: mounts}
	if err := l.build(); err != nil {
		return nil, err
	}
	return l.unseen, nil
}

// Exec replaces the process, after Enter, by the program at path. The program does not have the rights to change
// parts of the host that have no namespace: the kernel's modules and log, the clock, and devices. Exec returns only
// if it fails.
func Exec(path string, argv []string) error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	return unix.Exec(path, argv, os.Environ())
}

// Written returns a line for each file that was written or removed since Enter(dir) in a directory with an overlay.
// The line of a removed file or directory ends with "(removed)". Written leaves out Python's caches.
func Written(dir string) (lines []string, err error) {
	root := filepath.Join(dir, "written")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		isCache := d.Name() == "__pycache__"
		switch {
		case isCache && d.IsDir():
			return fs.SkipDir
		case isCache, d.IsDir():
			// The mark of a removed cache is not a directory. SkipDir would skip the files beside it.
			return nil
		}

		line := strings.TrimPrefix(path, root)
		// overlayfs marks a removed file with a character device.
		isRemoved := d.Type()&fs.ModeCharDevice != 0
		if isRemoved {
			line += " (removed)"
		}
		lines = append(lines, line+"\n")
		return nil
	})

	return lines, err
}

// readMounts returns the sorted paths of all mounts. A mount below a different mount comes after it.
func readMounts() (paths []string, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}

	// proc(5) describes the fields and these escapes.
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(table)) {
		mountPoint := strings.Fields(line)[4]
		paths = append(paths, unescape.Replace(mountPoint))
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// startLoopback brings the loopback interface up.
func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)

	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// dropCapabilities removes the capabilities that act on the whole host from the bounding set. The next
// program that this thread executes does not have them.
func dropCapabilities() error {
	capabilities := []uintptr{
		unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYS_BOOT, unix.CAP_MKNOD, unix.CAP_SYSLOG,
		unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_AUDIT_CONTROL,
	}

	for _, capability := range capabilities {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		// EINVAL means that the kernel does not have the capability.
		if err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("cannot give up capability %d: %w", capability, err)
		}
	}

	return nil
}
