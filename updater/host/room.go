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

// maxInstalled is of how many components a server says from which files they are installed.
const maxInstalled = 128

// Room returns the free space of the file systems that hold the manifest's files and those of the next
// release. It also returns, by component, the sums of the installed files. It returns neither if there are
// more components than a record holds.
func (h *Host) Room(m release.Manifest) (rooms []record.Room, installed map[string]string, err error) {
	installed, err = h.installedSums()
	if err != nil || len(installed) > maxInstalled {
		return nil, nil, err
	}

	at := map[uint64]int{}

	add := func(what, dir string) error {
		device, free, err := statFileSystem(dir)
		if err != nil {
			return err
		}

		i, known := at[device]
		if !known {
			i = len(rooms)
			at[device] = i
			rooms = append(rooms, record.Room{At: dir, Free: free})
		}
		if !slices.Contains(rooms[i].For, what) {
			rooms[i].For = append(rooms[i].For, what)
		}

		return nil
	}

	if err := add(record.RoomDownloads, h.dir); err != nil {
		return nil, nil, err
	}

	rooms[0].Free += h.reusableBytes()
	if err := add(record.RoomPackages, "/"); err != nil {
		return nil, nil, err
	}

	if h.program != "" {
		if err := add(record.RoomProgram, filepath.Dir(h.program)); err != nil {
			return nil, nil, err
		}
	}

	for _, c := range m.Components {
		if c.Artifact == nil || c.Artifact.Archive == nil {
			continue
		}

		dir := filepath.Dir(c.Artifact.Archive.To)
		if err := add(dir, dir); err != nil {
			return nil, nil, err
		}
	}

	return rooms, installed, nil
}

// statFileSystem returns which file system the folder is on, or will be, and how many bytes are free there.
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
			return 0, 0, fmt.Errorf("cannot see how much room there is at %s: %w", dir, err)
		}
		if err := unix.Statfs(dir, &fileSystem); err != nil {
			return 0, 0, fmt.Errorf("cannot see how much room there is at %s: %w", dir, err)
		}

		return s.Dev, int64(fileSystem.Bavail) * fileSystem.Frsize, nil
	}
}

// reusableBytes returns how much disk space the worker's downloads take. Files that cannot be read do not
// count.
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

// installedSums returns the sums of the files of all components that are whole, of this release or others.
func (h *Host) installedSums() (map[string]string, error) {
	all := map[string]string{}
	files, err := os.ReadDir(filepath.Join(h.dir, "components"))
	if err != nil {
		return nil, fmt.Errorf("cannot see which components are installed: %w", err)
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
