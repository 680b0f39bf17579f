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
// written. It also returns the digests of the installed files by component. If there are digests for more than
// maxInstalled components, it returns no file systems and no digests.
func (h *Host) Room(m release.Manifest) (rooms []record.Room, installed map[string]string, err error) {
	installed, err = h.installedSums()
	if err != nil {
		return nil, nil, err
	}
	// Without the digests, the leader would count files that are already installed. So it gets no free space
	// either.
	if len(installed) > maxInstalled {
		return nil, nil, nil
	}

	l := roomList{index: map[uint64]int{}}
	if err := l.add(record.RoomDownloads, h.dir); err != nil {
		return nil, nil, err
	}
	// The first room is that of the downloads. The space of the worker's own downloads counts as free.
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

		// For an archive, the directory itself is the kind of files.
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
	index map[uint64]int // the index in rooms, by device
}

// add adds the file system of the directory, and the kind of files that the worker writes there, as in
// Room.For.
func (l *roomList) add(kind, dir string) error {
	device, free, err := statFileSystem(dir)
	if err != nil {
		return err
	}

	i, isKnown := l.index[device]
	if !isKnown {
		i = len(l.rooms)
		l.index[device] = i
		l.rooms = append(l.rooms, record.Room{At: dir, Free: free})
	}
	if !slices.Contains(l.rooms[i].For, kind) {
		l.rooms[i].For = append(l.rooms[i].For, kind)
	}

	return nil
}

// statFileSystem returns the device of the directory's file system, and the number of free bytes there. If the
// directory does not exist, statFileSystem uses the nearest parent directory that exists.
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

// reusableBytes returns the disk space that the worker's downloads use, including downloaded releases of this
// program. It ignores files that cannot be read.
func (h *Host) reusableBytes() (n int64) {
	for _, name := range []string{"downloads", "releases"} {
		_ = filepath.WalkDir(filepath.Join(h.dir, name), func(path string, _ fs.DirEntry, err error) error {
			var s unix.Stat_t
			isFile := err == nil && unix.Lstat(path, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFREG
			if isFile {
				// stat(2) counts blocks of 512 bytes.
				n += s.Blocks * 512
			}
			return nil
		})
	}

	return n
}

// installedSums returns the digests of the files from which components were installed, by component and in the
// form of record.ShortDigest. It includes components of other releases. It leaves out components that have no
// such file, or whose installation was interrupted.
func (h *Host) installedSums() (map[string]string, error) {
	sums := map[string]string{}
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

		// The format is that of artifactID: the kind, the sum, and the directory of an archive.
		kind, others, _ := strings.Cut(c.Artifact, " ")
		sum, _, _ := strings.Cut(others, " ")
		hasFile := kind == "archive" || kind == "deb"
		if hasFile && c.Phase != phaseChanging {
			sums[name] = record.ShortDigest(sum)
		}
	}

	return sums, nil
}
