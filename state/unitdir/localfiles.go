package unitdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// fileSet is a set of slash-separated paths below the unit's charm folder.
type fileSet map[string]bool

// charmManifest lists the files that charm archives have brought. All other files in the folder
// were made there by hooks, and are kept: libraries of charms keep their databases in it.
type charmManifest struct {
	Files []string `json:"files"`
}

func (f Folder) charmFileListPath() string { return f.Path("charm.files") }

// readCharmFileList returns the files that came with the charm. The set is empty if there is no list. Then
// all files count as made by hooks, since it is worse to lose such a file than to keep one too many.
func (f Folder) readCharmFileList() (fileSet, error) {
	var m charmManifest
	if _, err := jsonfile.Read(f.charmFileListPath(), &m); err != nil {
		return nil, fmt.Errorf("cannot read the list of the charm's files: %w", err)
	}

	b := make(fileSet, len(m.Files))
	for _, name := range m.Files {
		b[name] = true
	}
	return b, nil
}

// writeCharmFileList writes the list of files that came with the charm.
func (f Folder) writeCharmFileList(all ...fileSet) error {
	var m charmManifest
	for _, b := range all {
		for name := range b {
			m.Files = append(m.Files, name)
		}
	}

	if err := jsonfile.Write(f.charmFileListPath(), m); err != nil {
		return fmt.Errorf("cannot write the list of the charm's files: %w", err)
	}

	return nil
}

// unpackedFiles returns the files in charm.new.
func (f Folder) unpackedFiles() (fileSet, error) {
	b := fileSet{}
	err := fs.WalkDir(os.DirFS(string(f)), "charm.new", func(name string, _ fs.DirEntry, err error) error {
		if inside, ok := strings.CutPrefix(name, "charm.new/"); ok {
			b[inside] = true
		}
		return err
	})

	return b, err
}

// preserveLocalFiles adds the files that hooks have made in charm/ to charm.new/. Files of the new charm
// win. It links files instead of moving them. So the old charm stays whole until the swap, and a process
// that has a file open goes on writing to the same one.
func (f Folder) preserveLocalFiles(old fileSet) error {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	defer root.Close()

	m := &preserver{root: root, shipped: old, changedDirs: map[string]bool{}}
	if err := m.preserveDir("."); err != nil {
		return fmt.Errorf("cannot keep the files that hooks have made: %w", osutil.InFolder(err, string(f)))
	}
	if err := m.syncDirs(); err != nil {
		return osutil.InFolder(err, string(f))
	}

	return osutil.InFolder(m.restoreDirModes(), string(f))
}

// preserver links hook-made files from the old charm folder to the new one.
type preserver struct {
	root        *os.Root // the unit's folder
	shipped     fileSet
	madeDirs    []string        // by the preserver, parents first
	changedDirs map[string]bool // to be synced
}

func oldPath(name string) string { return path.Join("charm", name) }
func newPath(name string) string { return path.Join("charm.new", name) }

// preserveDir preserves the local files of one directory. It ignores files that vanish meanwhile: no hook
// runs, but processes of former hooks may.
func (p *preserver) preserveDir(dir string) error {
	f, err := p.root.Open(oldPath(dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		return err
	}

	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.Name() == "__pycache__" { // made from the old charm's code, and of no use to the new
			continue
		}
		if err := p.preserveEntry(path.Join(dir, e.Name()), e); err != nil {
			return err
		}
	}

	return nil
}

// preserveEntry adds one entry of the old charm's directory to the new one, unless the old charm shipped it
// or the new one has an entry of that name. It searches directories in any case.
func (p *preserver) preserveEntry(name string, e fs.DirEntry) error {
	there, err := p.root.Lstat(newPath(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if there.IsDir() && e.IsDir() {
			return p.preserveDir(name)
		}
		return nil // what the new charm has goes first
	}

	if e.IsDir() {
		if !p.shipped[name] { // a hook made it: it is kept even if it is empty
			if err := p.ensureDir(name); err != nil {
				return err
			}
		}
		return p.preserveDir(name)
	}
	if p.shipped[name] {
		return nil
	}

	if err := p.ensureDir(path.Dir(name)); err != nil {
		return err
	}

	p.changedDirs[path.Dir(name)] = true
	if err := p.linkOrCopy(name, e.Type()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// ensureDir makes a directory and its parents in the new charm, unless they exist.
func (p *preserver) ensureDir(dir string) error {
	if _, err := p.root.Lstat(newPath(dir)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.ensureDir(path.Dir(dir)); err != nil {
		return err
	}

	p.madeDirs = append(p.madeDirs, dir)
	p.changedDirs[path.Dir(dir)] = true
	p.changedDirs[dir] = true
	return p.root.Mkdir(newPath(dir), 0o700)
}

// linkOrCopy brings a file of the old charm into the new one. It makes a hard link, or a copy if the file
// system has no links.
func (p *preserver) linkOrCopy(name string, kind fs.FileMode) error {
	if err := p.root.Link(oldPath(name), newPath(name)); err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}

	switch kind {
	case fs.ModeSymlink:
		target, err := p.root.Readlink(oldPath(name))
		if err != nil {
			return err
		}
		return p.root.Symlink(target, newPath(name))
	case 0:
		return p.copyFile(name)
	}

	return nil // a socket or the like: who made it makes it again
}

// copyFile copies a file of the old charm into the new one.
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

	if info.Mode()&0o111 != 0 {
		defer osutil.BlockForks()()
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

// restoreDirModes gives directories that were made owners and modes of those in the old charm.
func (p *preserver) restoreDirModes() error {
	for i := len(p.madeDirs) - 1; i >= 0; i-- {
		info, err := p.root.Lstat(oldPath(p.madeDirs[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}

		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = p.root.Lchown(newPath(p.madeDirs[i]), int(s.Uid), int(s.Gid))
		}
		if err := p.root.Chmod(newPath(p.madeDirs[i]), info.Mode()); err != nil {
			return err
		}
	}

	return nil
}

// syncDirs syncs the changed directories. It leaves the files' contents to the functions that write them.
func (p *preserver) syncDirs() error {
	for dir := range p.changedDirs {
		f, err := p.root.Open(newPath(dir))
		if err != nil {
			return err
		}

		err = f.Sync()
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}

	return nil
}
