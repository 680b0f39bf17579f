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

// isMount reports whether something is mounted on a directory. It reads mountinfo, since a directory that
// is bound from the same file system looks like any other.
func isMount(folder string) bool {
	path, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}

	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == escaped {
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

// MountTmpfs mounts a file system of that size in memory on a folder, unless there is one.
func MountTmpfs(folder string, mib int64) error {
	if isMount(folder) {
		return nil
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=755,size=%dm", mib)); err != nil {
		return fmt.Errorf("cannot mount a tmpfs on %s: %w", folder, err)
	}

	return nil
}

// BindMount makes a directory visible at a location, which must be an empty directory or missing. It first
// makes note, a symlink to the location, from which [ReleaseMount] learns where the mount is. It may be
// repeated.
func BindMount(folder, location, note string, readOnly bool) error {
	if to, err := os.Readlink(note); err != nil || to != location {
		if err := moveNote(note, location); err != nil {
			return err
		}
	}

	if !isSame(folder, location) {
		if err := bindFolder(folder, location, readOnly); err != nil {
			return err
		}
	}

	if !readOnly {
		return nil
	}
	if err := unix.Mount("", location, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("cannot make %s read-only: %w", location, err)
	}

	return nil
}

// moveNote releases the location that the note records, and then records a different one.
func moveNote(note, location string) error {
	if err := ReleaseMount(note, false); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(note), 0o755); err != nil {
		return err
	}

	return os.Symlink(location, note)
}

func isSame(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// bindFolder mounts a directory on a location. A user who may not mount gets a symlink at the location
// instead, unless the mount must be read-only.
func bindFolder(folder, location string, readOnly bool) error {
	if to, err := os.Readlink(location); err == nil {
		return fmt.Errorf("%s is a link to %s", location, to)
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
		return fmt.Errorf("%s is not empty, and mounting would hide its content: move the content away", location)
	}

	err = unix.Mount(folder, location, "", unix.MS_BIND, "")
	if errors.Is(err, unix.EPERM) && !readOnly {
		err = os.Remove(location)
		if err == nil {
			err = os.Symlink(folder, location)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot bind %s at %s: %w", folder, location, err)
	}

	return nil
}

// ReleaseMount unmounts the location recorded in note, or removes the symlink there, and removes note. It
// returns an error while processes have files open below the location. With lazily it does not, and these
// processes keep their files.
func ReleaseMount(note string, lazily bool) error {
	location, err := os.Readlink(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	if to, linkErr := os.Readlink(location); linkErr == nil {
		if strings.HasSuffix(to, filepath.Base(note)) { // and nobody else's
			err = os.Remove(location)
		}
	} else {
		err = Unmount(location, lazily)
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("processes use %s: end them", location)
	}
	if err != nil {
		return fmt.Errorf("cannot release %s: %w", location, err)
	}

	return os.Remove(note)
}

// Unmount unmounts a directory. With lazily, processes keep the files that they have open. It does nothing
// if nothing is mounted there.
func Unmount(folder string, lazily bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazily {
		flags |= unix.MNT_DETACH
	}
	if !isMount(folder) {
		return nil
	}

	return unix.Unmount(folder, flags)
}

// RemoveAll removes a folder with all that it holds. It moves it aside first, so that nobody finds half of it.
func RemoveAll(folder string) error {
	aside := filepath.Join(filepath.Dir(folder), ".removing-"+filepath.Base(folder))
	if err := Unmount(folder, true); err != nil {
		return fmt.Errorf("cannot unmount %s: %w", folder, err)
	}
	if err := os.Rename(folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return os.RemoveAll(aside)
}
