package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"bijou/updater/record"
	"bijou/updater/release"
)

// maxInstalled is the maximum number of components for which Room returns sums.
const maxInstalled = 128

// Room returns the free space on the file systems to which the manifest's files and the next release are
// written. It also returns the digests of the installed files by component. If there are more than
// maxInstalled components, it returns neither.
func (h *Host) Room(m release.Manifest) (rooms []record.Room, installed map[string]string, err error) {
	installed, err = h.installedSums()
	if err != nil || len(installed) > maxInstalled {
		return nil, nil, err
	}

	l := roomList{at: map[uint64]int{}}
	if err := l.add(record.RoomDownloads, h.dir); err != nil {
		return nil, nil, err
	}
	l.rooms[0].Free += h.reusableBytes()
	if err := l.add(record.RoomPackages, "/"); err != nil {
		return nil, nil, err
	}
	if h.program != "" {
		if err := l.add(record.RoomProgram, filepath.Dir(h.program)); err != nil {
			return nil, nil, err
		}
	}

	for _, c := range m.Components {
		if c.Artifact == nil || c.Artifact.Archive == nil {
			continue
		}

		dir := filepath.Dir(c.Artifact.Archive.To)
		if err := l.add(dir, dir); err != nil {
			return nil, nil, err
		}
	}

	return l.rooms, installed, nil
}

// roomList collects the free space of file systems, each once.
type roomList struct {
	rooms []record.Room
	at    map[uint64]int // the index in rooms, by device
}

// add adds the file system of the directory, and the kind of files that the worker writes there, as in
// Room.For.
func (l *roomList) add(what, dir string) error {
	device, free, err := statFileSystem(dir)
	if err != nil {
		return err
	}

	i, known := l.at[device]
	if !known {
		i = len(l.rooms)
		l.at[device] = i
		l.rooms = append(l.rooms, record.Room{At: dir, Free: free})
	}
	if !slices.Contains(l.rooms[i].For, what) {
		l.rooms[i].For = append(l.rooms[i].For, what)
	}

	return nil
}

// statFileSystem returns the file system of the directory, and the number of free bytes there. The
// directory does not need to exist.
func statFileSystem(dir string) (device uint64, free int64, err error) {
	for {
		var s unix.Stat_t
		var fileSystem unix.Statfs_t
		err := unix.Stat(dir, &s)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}

		if err != nil {
			return 0, 0, fmt.Errorf("cannot determine the free space at %s: %w", dir, err)
		}
		if err := unix.Statfs(dir, &fileSystem); err != nil {
			return 0, 0, fmt.Errorf("cannot determine the free space at %s: %w", dir, err)
		}

		return s.Dev, int64(fileSystem.Bavail) * fileSystem.Frsize, nil
	}
}

// reusableBytes returns the disk space that the worker's downloads use. It ignores files that cannot be
// read.
func (h *Host) reusableBytes() (n int64) {
	for _, name := range []string{"downloads", "releases"} {
		_ = filepath.WalkDir(filepath.Join(h.dir, name), func(path string, _ fs.DirEntry, err error) error {
			var s unix.Stat_t
			if err == nil && unix.Lstat(path, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFREG {
				n += s.Blocks * 512
			}
			return nil
		})
	}

	return n
}

// installedSums returns the digests of the files of all completely installed components, even of other
// releases.
func (h *Host) installedSums() (map[string]string, error) {
	all := map[string]string{}
	files, err := os.ReadDir(filepath.Join(h.dir, "components"))
	if err != nil {
		return nil, fmt.Errorf("cannot find out which components are installed: %w", err)
	}

	for _, f := range files {
		name, isRecord := strings.CutSuffix(f.Name(), ".json")
		if !isRecord {
			continue
		}
		c, err := h.readRecord(name)
		if err != nil {
			return nil, err
		}

		kind, rest, _ := strings.Cut(c.Artifact, " ")
		sum, _, _ := strings.Cut(rest, " ")
		if (kind == "archive" || kind == "deb") && c.Phase != phaseChanging {
			all[name] = record.ShortDigest(sum)
		}
	}

	return all, nil
}
