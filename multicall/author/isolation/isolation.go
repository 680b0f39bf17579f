// Package isolation keeps what a process and all that it starts do from the host they run on.
//
// They see the host's files; what they write is laid over these, in memory. Hostname, processes,
// System V and POSIX IPC, /dev/shm and, unless it is asked for, the network are their own; /sys and
// /proc/sys are read-only. All of it ends with the first process. Where the user is not root, they
// believe to be. It protects a host from what a program does by its nature, as `hostname web` or
// `modprobe`; it is no prison for a program that means to get out.
//
// It knows nothing of charms.
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

// Hostname is what the host is called inside.
const Hostname = "charm-test"

// Prepare makes the command run in new namespaces, in which it must call Enter. With network it uses the
// host's network. Otherwise it has only a loopback interface.
func Prepare(cmd *exec.Cmd, network bool) {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if !network {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}

	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}

// Enter cuts this process, which Prepare has prepared, off from the host. dir becomes a directory in
// memory, and all writes elsewhere go to a layer over the host's files. It returns the files of the host
// that the process cannot see, each with the reason. After an error the process is half inside, and must
// end.
func Enter(dir string, network bool) (unseen []string, err error) {
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
			return nil, fmt.Errorf("cannot start the loopback: %w", err)
		}
	}

	l := layout{dir: dir, mounts: mounts}
	if err := l.build(); err != nil {
		return nil, err
	}
	return l.unseen, nil
}

// Exec replaces the process, after Enter, by argv[0] without the rights to change what has no
// namespace: the kernel's modules and log, the clock, devices. It returns only an error.
func Exec(path string, argv []string) error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	return unix.Exec(path, argv, os.Environ())
}

// Written returns the files outside of dir, as given to Enter, that were written or, with a mark,
// removed, each as a line.
func Written(dir string) (files []string, err error) {
	root := filepath.Join(dir, "written")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root)
		switch {
		case err == nil && d.Name() == "__pycache__":
			return fs.SkipDir
		case err != nil || d.IsDir():
			return err
		case d.Type()&fs.ModeCharDevice != 0: // overlayfs marks so what is removed
			name += " (removed)"
		}

		files = append(files, name+"\n")
		return nil
	})

	return files, err
}

// readMounts returns the paths of all mounts, sorted: what is mounted below another comes after it.
func readMounts() (paths []string, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}

	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(table)) {
		paths = append(paths, unescape.Replace(strings.Fields(line)[4]))
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
	hostwide := []uintptr{
		unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME, unix.CAP_SYS_BOOT, unix.CAP_MKNOD, unix.CAP_SYSLOG,
		unix.CAP_WAKE_ALARM, unix.CAP_BLOCK_SUSPEND, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_AUDIT_CONTROL,
	}

	for _, capability := range hostwide {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // the kernel does not know it
			return fmt.Errorf("cannot give up capability %d: %w", capability, err)
		}
	}

	return nil
}
