package osutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// isMount reports whether something is mounted on a directory. It reads mountinfo, since stat does not show a
// bind mount from the same file system.
func isMount(folder string) bool {
	path, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}

	// If mountinfo cannot be read, nothing counts as mounted.
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	// In mountinfo, these characters have octal escapes.
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range strings.Lines(string(mounts)) {
		// The fifth field is the mount point; see proc(5).
		fields := strings.Fields(line)
		if len(fields) > 4 && fields[4] == escaped {
			return true
		}
	}

	return false
}

// IsEmptyDir reports whether the directory is empty or missing.
func IsEmptyDir(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}

// MountTmpfs mounts a tmpfs of mib MiB on a directory, unless something is mounted there.
func MountTmpfs(folder string, mib int64) error {
	if isMount(folder) {
		return nil
	}

	options := fmt.Sprintf("mode=755,size=%dm", mib)
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("cannot mount a tmpfs on %s: %w", folder, err)
	}

	return nil
}

// BindMount makes a directory visible at a location. The location must be an empty directory or missing. First
// BindMount creates a symlink to the location at the path note, which [ReleaseMount] needs. If note leads to a
// different location, BindMount releases that location first. If this process does not have the right to mount,
// BindMount creates a symlink at the location instead, unless readOnly is true. BindMount is idempotent.
func BindMount(folder, location, note string, readOnly bool) error {
	// Without a note, err is not nil, and moveNote only records the location.
	recorded, err := os.Readlink(note)
	if err != nil || recorded != location {
		if err := moveNote(note, location); err != nil {
			return err
		}
	}

	// After an earlier call, the directory is already visible at the location.
	if !isSame(folder, location) {
		if err := bindFolder(folder, location, readOnly); err != nil {
			return err
		}
	}

	if !readOnly {
		return nil
	}

	// Linux ignores MS_RDONLY in the call that creates a bind mount.
	if err := unix.Mount("", location, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("cannot make %s read-only: %w", location, err)
	}

	return nil
}

// moveNote releases the location that the note records, and then records the new location.
func moveNote(note, location string) error {
	if err := ReleaseMount(note, IfUnused); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(note), 0o755); err != nil {
		return err
	}

	return os.Symlink(location, note)
}

// isSame reports whether both paths lead to the same file or directory.
func isSame(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// bindFolder mounts a directory on a location, which must be an empty directory or missing. If this process does
// not have the right to mount, it creates a symlink at the location instead. It returns an error instead of a
// symlink if the mount must be read-only, since a symlink cannot be. BindMount makes the mount read-only.
func bindFolder(folder, location string, readOnly bool) error {
	if target, err := os.Readlink(location); err == nil {
		return fmt.Errorf("%s is a symlink to %s", location, target)
	}
	if isMount(location) {
		return fmt.Errorf("another storage, or file system, is mounted on %s", location)
	}
	if err := os.MkdirAll(location, 0o755); err != nil {
		return err
	}

	empty, err := IsEmptyDir(location)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%s is not empty, and a mount would hide its content: move the content away", location)
	}

	err = unix.Mount(folder, location, "", unix.MS_BIND, "")
	if errors.Is(err, unix.EPERM) && !readOnly {
		err = replaceBySymlink(location, folder)
	}
	if err != nil {
		return fmt.Errorf("cannot bind %s at %s: %w", folder, location, err)
	}

	return nil
}

// replaceBySymlink replaces an empty directory with a symlink to the target.
func replaceBySymlink(dir, target string) error {
	if err := os.Remove(dir); err != nil {
		return err
	}
	return os.Symlink(target, dir)
}

// UnmountMode says what happens if processes have files open on the mount.
type UnmountMode int

const (
	IfUnused UnmountMode = iota // the unmount fails
	Lazily                      // the unmount succeeds, and the processes keep their open files
)

// ReleaseMount unmounts the location to which note leads, or removes the symlink that BindMount has created there.
// Then it removes note. With IfUnused, it returns an error while processes have files open on the mount. It does
// nothing if note does not exist.
func ReleaseMount(note string, mode UnmountMode) error {
	location, err := os.Readlink(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	// By this name, releaseLocation recognizes a symlink that BindMount has created.
	err = releaseLocation(location, filepath.Base(note), mode)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("processes use %s: end these processes", location)
	}
	if err != nil {
		return fmt.Errorf("cannot release %s: %w", location, err)
	}

	return os.Remove(note)
}

// releaseLocation unmounts the location. If the location is a symlink whose target ends with name,
// releaseLocation removes the symlink. It keeps a symlink with a different target, which BindMount has not
// created.
func releaseLocation(location, name string, mode UnmountMode) error {
	target, err := os.Readlink(location)
	isSymlink := err == nil
	if !isSymlink {
		return Unmount(location, mode)
	}
	if !strings.HasSuffix(target, name) {
		return nil
	}

	return os.Remove(location)
}

// Unmount unmounts a directory. With IfUnused, it returns EBUSY while processes have files open there. It does
// nothing if nothing is mounted there.
func Unmount(folder string, mode UnmountMode) error {
	flags := unix.UMOUNT_NOFOLLOW
	if mode == Lazily {
		flags |= unix.MNT_DETACH
	}
	if !isMount(folder) {
		return nil
	}

	return unix.Unmount(folder, flags)
}

// RemoveAll unmounts a directory if necessary, and removes it with all of its content. It renames the directory
// before it removes the content, so that no process finds only a part of it. It returns no error if the directory
// does not exist.
func RemoveAll(folder string) error {
	aside := filepath.Join(filepath.Dir(folder), ".removing-"+filepath.Base(folder))
	if err := Unmount(folder, Lazily); err != nil {
		return fmt.Errorf("cannot unmount %s: %w", folder, err)
	}
	// An interrupted removal may have left a part of an earlier directory there, and the rename would fail.
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return os.RemoveAll(aside)
}
