package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bijou/state/osutil"
	"bijou/state/store"
)

// Held is the error of SetAsideReplaced if a process has the store open.
type Held struct {
	Path    string // the store's path
	Process int    // the pid of the process
}

// Error returns the message.
func (h *Held) Error() string {
	return fmt.Sprintf("process %d has %s open, which was replaced while it was open", h.Process, h.Path)
}

// SetAsideReplaced moves the files of a store that was replaced while it was open into a new directory, which
// it creates in the directory "set-aside" beside the store. It returns the new directory, or "" if the store
// does not exist or was not replaced. It returns a [*Held] if a process that this user can inspect has one of
// the files open. If it was interrupted before it moved the main file, a second call moves the remaining files.
// If it was interrupted after that, only the mark remains, which Create removes.
func SetAsideReplaced(path string) (directory string, err error) {
	file, err := findStoreFile(path)
	if errors.Is(err, store.ErrNoStore) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	// Without a mark, err is nil: the store was not replaced.
	var replaced *store.Replaced
	if err := checkMark(file); !errors.As(err, &replaced) {
		return "", err
	}

	// Move the mark last, since it keeps other processes from opening the store. Move the main file after its
	// log and the other files that belong to it, since a second call needs the main file to continue.
	files := []string{
		file.path + "-wal",
		file.path + "-shm",
		file.path + "-journal",
		file.path + "-bell",
		file.path,
		file.path + markSuffix,
	}
	if pid := findHolder(files); pid != 0 {
		return "", &Held{Path: file.path, Process: pid}
	}

	directory, err = makeAside(file.path)
	if err != nil {
		return "", err
	}

	for _, from := range files {
		err := os.Rename(from, filepath.Join(directory, filepath.Base(from)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return directory, fmt.Errorf("cannot set aside %q: %w", from, err)
		}
	}

	if err := osutil.SyncDir(directory); err != nil {
		return directory, err
	}

	return directory, osutil.SyncDir(filepath.Dir(file.path))
}

// makeAside returns the directory in "set-aside" for the files of the store at path. It creates the
// directory, or finds the directory that an interrupted call has created, which does not have the store's
// main file yet.
func makeAside(path string) (string, error) {
	// The stores that were set aside before have the lower numbers.
	for n := 1; ; n++ {
		directory := filepath.Join(filepath.Dir(path), "set-aside", filepath.Base(path)+"-"+strconv.Itoa(n))
		if err := osutil.MkdirAll(directory, 0o700); err != nil {
			return "", err
		}

		_, err := os.Lstat(filepath.Join(directory, filepath.Base(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return directory, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// findHolder returns the pid of a process that has one of the files open, or 0 if there is none among the
// processes that this user can inspect. Files that were removed or replaced since they were opened also count.
func findHolder(files []string) int {
	// Glob fails only for a bad pattern.
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !slices.Contains(files, strings.TrimSuffix(target, " (deleted)")) {
			continue
		}

		// The link is /proc/PID/fd/NUMBER.
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err == nil {
			return pid
		}
	}

	return 0
}
