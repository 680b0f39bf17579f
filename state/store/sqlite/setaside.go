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

// Held is returned by SetAsideReplaced while a process has the store open.
type Held struct {
	Path    string
	Process int
}

func (h *Held) Error() string {
	return fmt.Sprintf("process %d has %s open, which was replaced while it was open", h.Process, h.Path)
}

// SetAsideReplaced moves the files of a store that was replaced while it was open into a new directory beside
// it. It returns that directory, or "" if the store was not replaced. It returns a [*Held] if a process that
// this user can inspect has one of the files open. After an interruption it can be called again without
// losing a file.
func SetAsideReplaced(path string) (folder string, err error) {
	file, err := findStoreFile(path)
	if errors.Is(err, store.ErrNoStore) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	var replaced *store.Replaced
	if err := checkMark(file); !errors.As(err, &replaced) {
		return "", err
	}

	// The mark is moved last, since it keeps other processes from opening the store. The main file is moved
	// after its log and the other files that belong to it.
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
	folder, err = makeAside(file.path)
	if err != nil {
		return "", err
	}

	for _, from := range files {
		err := os.Rename(from, filepath.Join(folder, filepath.Base(from)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return folder, fmt.Errorf("cannot set aside %q: %w", from, err)
		}
	}

	if err := osutil.SyncDir(folder); err != nil {
		return folder, err
	}

	return folder, osutil.SyncDir(filepath.Dir(file.path))
}

// makeAside creates a directory in "set-aside", or returns the directory that an interrupted call has
// created. Such a directory does not have the store's main file yet.
func makeAside(path string) (string, error) {
	for n := 1; ; n++ {
		folder := filepath.Join(filepath.Dir(path), "set-aside", filepath.Base(path)+"-"+strconv.Itoa(n))
		if err := osutil.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}

		_, err := os.Lstat(filepath.Join(folder, filepath.Base(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return folder, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// findHolder returns the pid of a process that has one of the files open, or 0 if there is none. Files that
// were removed or replaced since they were opened also count.
func findHolder(files []string) int {
	// Glob fails only for a bad pattern.
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil || !slices.Contains(files, strings.TrimSuffix(to, " (deleted)")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err == nil {
			return pid
		}
	}

	return 0
}
