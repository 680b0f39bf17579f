// Package isolation keeps what a process and all that it starts write in a folder of theirs: they see
// the host's files, and all of them end with it. Where the user is not root, they believe to be.
//
// It knows nothing of charms. multicall/author imports it.
package isolation

import (
	"cmp"
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

// Prepare has the command run in namespaces of its own, where it is to call Enter.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}

// Layer is a folder in memory that has what is written, which is laid over the host's files.
type Layer struct {
	dir    string
	mounts []string // those that there were
}

// Enter makes the folder one in memory, and lays what is written over all other files from now on.
func Enter(dir string) (*Layer, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if os.Getpid() != 1 {
		err = errors.New("this is no namespace of its own")
	}
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") // or the host would see what is mounted
	}
	if err != nil {
		return nil, err
	}
	l := &Layer{dir: dir}
	for line := range strings.Lines(string(mounts)) {
		l.mounts = append(l.mounts, strings.Fields(line)[4])
	}
	if err := l.enter(); err != nil {
		return nil, fmt.Errorf("cannot lay files over those of this host: %w", err)
	}
	return l, nil
}

func (l *Layer) enter() error {
	root := filepath.Join(l.dir, "root")
	sockets := filepath.Join(root, "run", "bijou") // those of agents of the host are not theirs
	return cmp.Or(
		unix.Mount("tmpfs", l.dir, "tmpfs", 0, "mode=755"),
		os.Mkdir(root, 0o755),
		unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755"),
		l.lay("/", root),
		os.MkdirAll(sockets, 0o755),
		unix.Mount("tmpfs", sockets, "tmpfs", 0, "mode=755"),
		os.MkdirAll(root+l.dir, 0o755),
		unix.Mount(l.dir, root+l.dir, "", unix.MS_BIND, ""),
		os.Chdir(root),
		unix.PivotRoot(".", "."),
		unix.Unmount(".", unix.MNT_DETACH),
		os.Chdir("/"),
	)
}

// lay makes the target what the path is. Over a folder that has others mounted in it no user may lay
// anything: then what is in it is laid over, each by itself, and files are copied.
func (l *Layer) lay(path, target string) error {
	switch path {
	case l.dir:
		return nil
	case "/proc":
		return cmp.Or(os.Mkdir(target, 0o755), unix.Mount("proc", target, "proc", 0, ""))
	case "/sys", "/dev":
		return cmp.Or(os.Mkdir(target, 0o755), unix.Mount(path, target, "", unix.MS_BIND|unix.MS_REC, ""))
	}
	isBelow := func(mount string) bool { return mount != path && strings.HasPrefix(mount+"/", path+"/") }
	if path != "/" && (l.overlay(path, target) == nil || !slices.ContainsFunc(l.mounts, isBelow)) {
		for _, mount := range l.mounts {
			if isBelow(mount) {
				_ = l.overlay(mount, target+strings.TrimPrefix(mount, path))
			}
		}
		return nil // what cannot be laid over is empty
	}
	return l.layEntries(path, target)
}

func (l *Layer) layEntries(path, target string) error {
	entries, _ := os.ReadDir(path) // none, of what this user may not read
	err := os.MkdirAll(target, 0o755)
	for _, e := range entries {
		from, to := filepath.Join(path, e.Name()), filepath.Join(target, e.Name())
		switch link, _ := os.Readlink(from); {
		case e.IsDir():
			err = cmp.Or(err, l.lay(from, to))
		case link != "":
			err = cmp.Or(err, os.Symlink(link, to))
		case e.Type().IsRegular():
			data, _ := os.ReadFile(from)
			err = cmp.Or(err, os.WriteFile(to, data, 0o644))
		}
	}
	return err
}

func (l *Layer) overlay(path, target string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	upper, work := filepath.Join(l.dir, "written", path), filepath.Join(l.dir, "work", path, ".work")
	err = cmp.Or(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755), os.MkdirAll(target, 0o755), os.Chmod(upper, info.Mode()))
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", path, upper, work)
	if err == nil && unix.Mount("overlay", target, "overlay", 0, options+",userxattr") != nil { // so that users may
		err = unix.Mount("overlay", target, "overlay", 0, options)
	}
	return err
}

// Written returns the files outside of the folder that were written or, with a mark, removed, each as a line.
func (l *Layer) Written() (files []string, err error) {
	root := filepath.Join(l.dir, "written")
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
