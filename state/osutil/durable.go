package osutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// This file makes files and directories last: renameio syncs a file before it takes its name, and SyncDir then syncs
// the directory that has the name.

// Option changes how a file is written.
type Option int

// ExactMode gives the file its mode regardless of the umask and of the file's previous mode. It is for files that
// other users must be able to read or execute.
const ExactMode Option = iota + 1

// WriteFile replaces a file. After a power loss the file has either its old or its new content. Once
// WriteFile has returned, the file has its new content. An existing file keeps its mode, unless ExactMode is
// given.
//
// A file with an executable mode can be executed immediately. While such a file is open for writing, this
// process does not fork, since a child would inherit the descriptor, and the file could not be executed
// (ETXTBSY).
func WriteFile(path string, data []byte, mode fs.FileMode, options ...Option) error {
	return writeFile(path, data, mode, options, SyncDir)
}

// writeFile writes a temporary file and renames it, so that a reader sees either the old or the new content. Unless
// the options contain ExactMode, an existing file keeps its mode. sync is SyncDir, except in tests.
func writeFile(path string, data []byte, mode fs.FileMode, options []Option, sync func(folder string) error) error {
	isExecutable := mode&0o111 != 0
	if isExecutable {
		// A read lock of ForkLock keeps this process from forking. A child would inherit the open file, which
		// nobody can execute while it is open for writing.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}

	var modeOptions []renameio.Option
	if !slices.Contains(options, ExactMode) {
		modeOptions = append(modeOptions, renameio.WithExistingPermissions())
	}
	f, err := create(path, mode, options, modeOptions...)
	if err != nil {
		return err
	}
	defer f.Discard()
	f.sync = sync

	for part := range slices.Chunk(data, writeChunkSize) {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Commit()
}

// writeChunkSize is the size of one write, in bytes. For larger writes Linux uses larger pages in its cache,
// and maps each page as a whole. Hook tools execute only a few pages of the binary. With larger pages, three
// times the memory would count as theirs.
const writeChunkSize = 64 << 10

// File is a file that is written under a temporary name, for content that is not held in memory.
type File struct {
	pending *renameio.PendingFile
	path    string                    // the path that Commit moves the file to
	sync    func(folder string) error // SyncDir, except in tests
}

// Create starts to write a file, which Commit moves to path. The file gets the mode even if it replaces a
// file with a different mode. Create is for files that nobody executes.
func Create(path string, mode fs.FileMode, options ...Option) (*File, error) {
	return create(path, mode, options)
}

// create does what Create does, with additional options for renameio.
func create(path string, mode fs.FileMode, options []Option, extra ...renameio.Option) (*File, error) {
	// The temporary file is in the same directory, so that Commit can rename it.
	all := append(extra, renameio.WithPermissions(mode), renameio.WithTempDir(filepath.Dir(path)))
	if slices.Contains(options, ExactMode) {
		all = append(all, renameio.IgnoreUmask())
	}
	pending, err := renameio.NewPendingFile(path, all...)
	if err != nil {
		return nil, err
	}

	return &File{pending: pending, path: path, sync: SyncDir}, nil
}

// Write appends to the file.
func (f *File) Write(p []byte) (int, error) { return f.pending.Write(p) }

// Commit moves the file to its path durably, as WriteFile does.
func (f *File) Commit() error {
	if err := f.pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncPlace(filepath.Dir(f.path), f.sync)
}

// Discard removes the temporary file, unless it was committed.
func (f *File) Discard() {
	// Ignore an error: a temporary file that stays is harmless.
	_ = f.pending.Cleanup()
}

// Symlink durably creates symlinks at the paths links, which lead to the target. It replaces existing files
// atomically.
func Symlink(target string, links ...string) error { return symlink(target, links, SyncDir) }

// symlink does what Symlink does. It syncs each directory once. sync is SyncDir, except in tests.
func symlink(target string, links []string, sync func(folder string) error) error {
	var folders []string
	for _, link := range links {
		if err := renameio.Symlink(target, link); err != nil {
			return err
		}
		folders = append(folders, filepath.Dir(link))
	}

	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if err := syncPlace(folder, sync); err != nil {
			return err
		}
	}

	return nil
}

// syncPlace syncs a directory after a file was moved into it. It returns no error if the directory cannot be
// synced at all; see isUnsyncable.
func syncPlace(folder string, sync func(folder string) error) error {
	err := sync(folder)
	if isUnsyncable(err) {
		return nil
	}
	return err
}

// SyncDir makes the current names in a directory durable, including removals.
func SyncDir(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// SyncAll does what SyncDir does, for a directory and all directories below it. It does not sync files.
func SyncAll(folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		return SyncDir(path)
	})
}

// SyncFileSystem syncs the whole file system of a directory. For thousands of files, this call is faster than
// syncing each file.
func SyncFileSystem(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = unix.Syncfs(int(f.Fd()))
	return errors.Join(err, f.Close())
}
