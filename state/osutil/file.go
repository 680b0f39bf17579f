package osutil

import (
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/google/renameio/v2"
)

// Option changes how a file is written.
type Option int

// ExactMode gives the file its mode whatever umask this process has, and whatever mode the file had
// before: others are to read it, or execute it.
const ExactMode Option = iota + 1

// WriteFile replaces a file. After a loss of power the file has either its old or its new content. Once
// WriteFile has returned, it has the new one. An existing file keeps its mode, unless ExactMode is given.
//
// A file with an executable mode can be executed at once. While it is open for writing this process forks
// no child, since the child would inherit the descriptor and cause ETXTBSY.
func WriteFile(path string, data []byte, mode fs.FileMode, options ...Option) error {
	return writeFile(path, data, mode, options, SyncDir)
}

// writeFile writes the file by way of a temporary one, so that a reader sees the old or the new content.
func writeFile(path string, data []byte, mode fs.FileMode, options []Option, sync func(folder string) error) error {
	if mode&0o111 != 0 {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}

	var how []renameio.Option
	if !slices.Contains(options, ExactMode) {
		how = append(how, renameio.WithExistingPermissions())
	}
	f, err := create(path, mode, options, how...)
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

// writeChunkSize is in bytes. Of larger pieces Linux makes as large pages, which are mapped whole:
// a hook tool, which runs a few of its pages, would be charged with three times the memory.
const writeChunkSize = 64 << 10

// File is a file that is written beside its place, for content that is not held in memory.
type File struct {
	pending *renameio.PendingFile
	path    string
	sync    func(folder string) error
}

// Create begins to write a file, which Commit puts into its place. It is for files that nobody executes,
// and gives them the mode also if there is one already.
func Create(path string, mode fs.FileMode, options ...Option) (*File, error) {
	return create(path, mode, options)
}

func create(path string, mode fs.FileMode, options []Option, how ...renameio.Option) (*File, error) {
	how = append(how, renameio.WithPermissions(mode), renameio.WithTempDir(filepath.Dir(path)))
	if slices.Contains(options, ExactMode) {
		how = append(how, renameio.IgnoreUmask())
	}
	pending, err := renameio.NewPendingFile(path, how...)
	if err != nil {
		return nil, err
	}

	return &File{pending: pending, path: path, sync: SyncDir}, nil
}

// Write appends to the file.
func (f *File) Write(p []byte) (int, error) { return f.pending.Write(p) }

// Commit puts the file into its place, as WriteFile does.
func (f *File) Commit() error {
	if err := f.pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncPlace(filepath.Dir(f.path), f.sync)
}

// Discard removes the file's draft, unless it was committed.
func (f *File) Discard() {
	_ = f.pending.Cleanup()
}

// Symlink makes links to the target. It replaces a file that has a link's name, in one rename.
func Symlink(target string, links ...string) error { return symlink(target, links, SyncDir) }

// symlink makes or replaces the links, and syncs their directories.
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

// syncPlace syncs a directory after a file was put into it. It returns no error if the directory cannot be
// synced at all, since the file is in its place.
func syncPlace(folder string, sync func(folder string) error) error {
	err := sync(folder)
	if isUnsyncable(err) {
		return nil
	}
	return err
}
