package unitfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
)

// Storage is a storage on its machine: a folder, which a unit finds at a location of its own.
type Storage struct {
	ID       string
	Folder   string // with what it holds
	Location string // Folder, or where that is bound
	ReadOnly bool
	TmpMiB   int64 // the size of the tmpfs that is mounted on Folder; 0: none is
}

// StorageOf returns where a storage of the unit is.
func (f Folder) StorageOf(environment string, s state.Storage) Storage {
	return StorageOf(filepath.Dir(filepath.Dir(string(f))), environment, s)
}

// StorageOf returns where a storage is below its machine's folder, or, in a pool of the operator's,
// below that.
func StorageOf(machineDir, environment string, s state.Storage) Storage {
	name := strings.ReplaceAll(s.ID, "/", "-")
	one := Storage{ID: s.ID, Folder: filepath.Join(machineDir, "storage", name), ReadOnly: s.ReadOnly}
	if base, ok := strings.CutPrefix(s.Pool, charm.PoolHost+":"); ok {
		one.Folder = filepath.Join(base, environment+"-"+name)
	}
	if s.Pool == charm.PoolTmpFS {
		one.TmpMiB = s.Size
	}
	one.Location = s.Location
	if one.Location == "" {
		one.Location = one.Folder
	}
	return one
}

// CheckFree returns why the storage's folder cannot be made: there is something already.
func (s Storage) CheckFree() error {
	empty, err := isEmpty(s.Folder)
	if err == nil && !empty {
		err = fmt.Errorf("%s has files that are not this storage's: move them away", s.Folder)
	}
	return err
}

// isEmpty is true for a folder that is not there, too.
func isEmpty(folder string) (bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}

// notePath is a link to the location, from which the storage has to go with the unit, however
// that ends.
func (f Folder) notePath(id string) string {
	return f.Path(filepath.Join("storage", strings.ReplaceAll(id, "/", "-")))
}

// BindStorage makes the storage's folder, and has the unit find it at its location: by a bind
// mount, or, for an agent that may not mount, by a link. It does nothing where that is so.
func (f Folder) BindStorage(s Storage) error {
	if err := durable.MkdirAll(s.Folder, 0o755); err != nil {
		return err
	}
	if err := s.mountTmp(); err != nil || s.Location == s.Folder {
		return err
	}
	note := f.notePath(s.ID)
	if err := durable.MkdirAll(filepath.Dir(note), 0o755); err != nil {
		return err
	}
	if to, err := os.Readlink(note); err != nil || to != s.Location {
		if err := errors.Join(f.UnbindStorage(s.ID, false), os.Symlink(s.Location, note)); err != nil {
			return err
		}
	}
	if !s.isBound() {
		if err := s.bind(); err != nil {
			return err
		}
	}
	if !s.ReadOnly {
		return nil
	}
	if err := unix.Mount("", s.Location, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("cannot make %s read-only: %w", s.Location, err)
	}
	return nil
}

// mountTmp leaves a tmpfs alone that is there.
func (s Storage) mountTmp() error {
	if s.TmpMiB == 0 || isMount(s.Folder) {
		return nil
	}
	if err := unix.Mount("tmpfs", s.Folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=755,size=%dm", s.TmpMiB)); err != nil {
		return fmt.Errorf("cannot mount a tmpfs on %s: %w", s.Folder, err)
	}
	return nil
}

// isMount reports whether something is mounted on a folder. It reads mountinfo, since a folder that is
// bound from the same file system looks like any other.
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

func (s Storage) isBound() bool {
	at, err := os.Stat(s.Location)
	folder, folderErr := os.Stat(s.Folder)
	return err == nil && folderErr == nil && os.SameFile(at, folder)
}

func (s Storage) bind() error {
	if to, err := os.Readlink(s.Location); err == nil {
		return fmt.Errorf("%s is a link to %s", s.Location, to)
	}
	if isMount(s.Location) {
		return fmt.Errorf("another storage, or file system, is mounted on %s", s.Location)
	}
	if err := durable.MkdirAll(s.Location, 0o755); err != nil {
		return err
	}
	empty, err := isEmpty(s.Location)
	if err == nil && !empty {
		err = fmt.Errorf("%s is not empty, and would be hidden: move what is in it away", s.Location)
	}
	if err != nil {
		return err
	}
	err = unix.Mount(s.Folder, s.Location, "", unix.MS_BIND, "")
	if errors.Is(err, unix.EPERM) && !s.ReadOnly {
		err = errors.Join(os.Remove(s.Location), os.Symlink(s.Folder, s.Location))
	}
	if err != nil {
		return fmt.Errorf("cannot bind %s at %s: %w", s.Folder, s.Location, err)
	}
	return nil
}

// UnbindStorage takes a storage away from where the unit finds it. What processes have open there
// keeps it from that, unless it is to be done lazily: they keep what they have.
func (f Folder) UnbindStorage(id string, lazily bool) error {
	note := f.notePath(id)
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
		flags := unix.UMOUNT_NOFOLLOW
		if lazily {
			flags |= unix.MNT_DETACH
		}
		err = unix.Unmount(location, flags)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("processes use %s: end them", location)
	case err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EPERM): // nothing is bound there
		return fmt.Errorf("cannot unbind %s: %w", location, err)
	}
	return os.Remove(note)
}

// unbindAll is for a unit that is gone: nothing of its folder may be removed before, lest what its storage
// holds goes with it.
func (f Folder) unbindAll() error {
	notes, err := os.ReadDir(f.Path("storage"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range notes {
		err = errors.Join(err, f.UnbindStorage(n.Name(), true))
	}
	return err
}

// RemoveAll removes the storage with all that it holds. It moves the folder aside first, so that
// nothing finds half of it.
func (s Storage) RemoveAll() error {
	aside := filepath.Join(filepath.Dir(s.Folder), ".removing-"+filepath.Base(s.Folder))
	if s.TmpMiB > 0 && isMount(s.Folder) {
		if err := unix.Unmount(s.Folder, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("cannot unmount %s: %w", s.Folder, err)
		}
	}
	if err := os.Rename(s.Folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(aside)
}
