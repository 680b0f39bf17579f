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

// Held is SetAsideReplaced's error while a process has the store open.
type Held struct {
	Path    string
	Process int
}

func (h *Held) Error() string {
	return fmt.Sprintf("process %d has %s open, which was replaced while it was open", h.Process, h.Path)
}

// SetAsideReplaced moves the files of a store that was replaced while it was open into a new directory
// beside it. It returns that directory; empty if the store was not replaced. It returns a [*Held] if a
// process that this user can inspect has one of the files open. After an interruption it may be called
// again: no file is lost.
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

	// The store's file goes after the files that belong to it, and the mark last: until then nobody opens
	// the rest.
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

// makeAside returns a new folder in "set-aside", or the one that was begun for this store: it has no
// file of a store yet.
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

// findHolder returns the pid of a process that has one of the files open; 0 if there is none. Files that
// were removed or replaced since count too.
func findHolder(files []string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // fails for a bad pattern only
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
