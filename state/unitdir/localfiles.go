package unitdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// fileSet is a set of slash-separated paths below the unit's charm directory.
type fileSet map[string]bool

// charmManifest lists the files that came with charms' archives. All other files in the charm directory were
// created by hooks. Upgrades keep the files of hooks, since charms' libraries store their databases in the
// charm directory.
type charmManifest struct {
	Files []string `json:"files"`
}

// charmFileListPath returns the path of the file with the charmManifest.
func (f Folder) charmFileListPath() string { return f.Path("charm.files") }

// readCharmFileList returns the files that came with the charm. If there is no list, it returns an empty set.
// All files then count as created by hooks, since it is better to keep a file of the old charm than to lose a
// file of a hook.
func (f Folder) readCharmFileList() (fileSet, error) {
	var m charmManifest
	if _, err := jsonfile.Read(f.charmFileListPath(), &m); err != nil {
		return nil, fmt.Errorf("cannot read the list of the charm's files: %w", err)
	}

	files := make(fileSet, len(m.Files))
	for _, name := range m.Files {
		files[name] = true
	}
	return files, nil
}

// writeCharmFileList writes the list of files that came with the charm. The list contains the files of all
// sets.
func (f Folder) writeCharmFileList(sets ...fileSet) error {
	var m charmManifest
	for _, files := range sets {
		for name := range files {
			m.Files = append(m.Files, name)
		}
	}

	if err := jsonfile.Write(f.charmFileListPath(), m); err != nil {
		return fmt.Errorf("cannot write the list of the charm's files: %w", err)
	}

	return nil
}

// unpackedFiles returns the files and directories in charm.new.
func (f Folder) unpackedFiles() (fileSet, error) {
	files := fileSet{}
	err := fs.WalkDir(os.DirFS(string(f)), "charm.new", func(name string, _ fs.DirEntry, err error) error {
		if inside, ok := strings.CutPrefix(name, "charm.new/"); ok {
			files[inside] = true
		}
		return err
	})

	return files, err
}

// preserveLocalFiles adds the files that hooks have created in charm/ to charm.new/. old contains the files
// that came with the old charm. If the new charm has a file with the same name, the new charm's file stays.
//
// preserveLocalFiles does not move files, so the old charm stays complete until the swap. If possible it creates
// hard links, so that a process that has a file open continues to write to the same file.
func (f Folder) preserveLocalFiles(old fileSet) error {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	defer root.Close()

	p := &preserver{root: root, shipped: old, changedDirs: map[string]bool{}}
	if err := p.preserveDir("."); err != nil {
		return fmt.Errorf("cannot keep the files that hooks have created: %w", osutil.InFolder(err, string(f)))
	}
	if err := p.syncDirs(); err != nil {
		return osutil.InFolder(err, string(f))
	}

	// The modes come last, since they can deny access to the directories.
	return osutil.InFolder(p.restoreDirModes(), string(f))
}

// preserver links files that hooks have created from the old charm directory into the new charm directory. The
// names that its methods take are relative to both directories.
type preserver struct {
	root        *os.Root        // the unit's directory
	shipped     fileSet         // the files that came with the old charm
	madeDirs    []string        // the directories that the preserver has created, parents first
	changedDirs map[string]bool // the directories that must be synced
}

// oldPath returns the path of a file in the old charm.
func oldPath(name string) string { return path.Join("charm", name) }

// newPath returns the path of a file in the new charm.
func newPath(name string) string { return path.Join("charm.new", name) }

// preserveDir adds the files that hooks have created in a directory to the new charm, except __pycache__. It
// ignores files that disappear while it works, since processes that earlier hooks have started may still be
// running.
func (p *preserver) preserveDir(dir string) error {
	f, err := p.root.Open(oldPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.Name() == "__pycache__" { // compiled from the old charm's code
			continue
		}
		if err := p.preserveEntry(path.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}

	return nil
}

// preserveEntry adds an entry of the old charm's directory to the new charm, unless the entry came with the old
// charm, or the new charm has an entry with that name. It also searches directories that it does not add.
func (p *preserver) preserveEntry(name string, e fs.DirEntry) error {
	inNew, err := p.root.Lstat(newPath(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if inNew.IsDir() && e.IsDir() {
			return p.preserveDir(name)
		}
		return nil // the new charm's entry stays
	}

	cameWithCharm := p.shipped[name]
	if e.IsDir() {
		if !cameWithCharm { // keep a directory that a hook has created, even if it is empty
			if err := p.ensureDir(name); err != nil {
				return err
			}
		}
		return p.preserveDir(name)
	}
	if cameWithCharm {
		return nil
	}

	parent := path.Dir(name)
	if err := p.ensureDir(parent); err != nil {
		return err
	}
	p.changedDirs[parent] = true
	err = p.linkOrCopy(name, e.Type())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// ensureDir creates a directory and its parents in the new charm, unless they exist. restoreDirModes later gives
// them their modes.
func (p *preserver) ensureDir(dir string) error {
	_, err := p.root.Lstat(newPath(dir))
	isMissing := errors.Is(err, fs.ErrNotExist)
	if !isMissing {
		return err // nil if the directory exists
	}
	if err := p.ensureDir(path.Dir(dir)); err != nil {
		return err
	}

	p.madeDirs = append(p.madeDirs, dir)
	p.changedDirs[path.Dir(dir)] = true
	p.changedDirs[dir] = true
	return p.root.Mkdir(newPath(dir), 0o700)
}

// linkOrCopy adds a file of the old charm to the new charm. It creates a hard link. If it cannot create a hard
// link, it copies a regular file or a symlink, and skips any other file. It returns [fs.ErrNotExist] if the file
// has disappeared.
func (p *preserver) linkOrCopy(name string, kind fs.FileMode) error {
	err := p.root.Link(oldPath(name), newPath(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}

	switch kind {
	case fs.ModeSymlink:
		target, err := p.root.Readlink(oldPath(name))
		if err != nil {
			return err
		}
		return p.root.Symlink(target, newPath(name))
	case 0: // a regular file
		return p.copyFile(name)
	}

	// Skip sockets and devices: the program that created such a file will create it again.
	return nil
}

// copyFile copies a file of the old charm into the new charm, with its mode but not its owner.
func (p *preserver) copyFile(name string) error {
	src, err := p.root.Open(oldPath(name))
	if err != nil {
		return err
	}
	defer src.Close()

	info, err := src.Stat()
	if err != nil {
		return err
	}

	// A child that this process forks while the file is open for writing would also have the file open, and the
	// kernel does not execute such a file.
	isExecutable := info.Mode()&0o111 != 0
	if isExecutable {
		unblock := osutil.BlockForks()
		defer unblock()
	}

	dst, err := p.root.OpenFile(newPath(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	err = fillFile(dst, src, info.Mode())
	return errors.Join(err, dst.Close())
}

// fillFile writes the content and mode of a file, and syncs it.
func fillFile(dst *os.File, src io.Reader, mode fs.FileMode) error {
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	if err := dst.Chmod(mode); err != nil {
		return err
	}

	return dst.Sync()
}

// restoreDirModes gives the created directories their modes in the old charm and, if possible, their owners.
func (p *preserver) restoreDirModes() error {
	// Children come before their parents, since the new mode of a parent can deny access to its children.
	for _, dir := range slices.Backward(p.madeDirs) {
		info, err := p.root.Lstat(oldPath(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}

		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			// Without root's rights, this fails unless the owner is the agent's own user.
			_ = p.root.Lchown(newPath(dir), int(s.Uid), int(s.Gid))
		}
		if err := p.root.Chmod(newPath(dir), info.Mode()); err != nil {
			return err
		}
	}

	return nil
}

// syncDirs syncs the changed directories. The functions that write files sync these files themselves.
func (p *preserver) syncDirs() error {
	for dir := range p.changedDirs {
		f, err := p.root.Open(newPath(dir))
		if err != nil {
			return err
		}

		syncErr := f.Sync()
		if err := errors.Join(syncErr, f.Close()); err != nil {
			return err
		}
	}

	return nil
}
