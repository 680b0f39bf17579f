package uniter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// brought are the paths that charms have brought into the unit's charm folder,
// slash-separated. All else in the folder was made there by hooks, and is the
// charm's own: libraries of charms keep their databases in it.
type brought map[string]bool

// manifest is the file in which they stand.
type manifest struct {
	Files []string `json:"files"`
}

func (f Folder) manifest() string { return f.path("charm.files") }

// brought reads them. Without the file nothing is known to be brought, so that
// all counts as the charm's own: what stays too long harms less than what is lost.
func (f Folder) brought() (brought, error) {
	data, err := os.ReadFile(f.manifest())
	if errors.Is(err, fs.ErrNotExist) {
		return brought{}, nil
	}
	var m manifest
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what the charm has brought: %w", err)
	}
	b := make(brought, len(m.Files))
	for _, name := range m.Files {
		b[name] = true
	}
	return b, nil
}

// note writes that these have been brought.
func (f Folder) note(all ...brought) error {
	var m manifest
	for _, b := range all {
		for name := range b {
			m.Files = append(m.Files, name)
		}
	}
	data, err := json.Marshal(m)
	if err == nil {
		err = renameio.WriteFile(f.manifest(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot note what the charm has brought: %w", err)
	}
	return nil
}

// unpacked are the paths of the charm in charm.new.
func (f Folder) unpacked() (brought, error) {
	b := brought{}
	err := fs.WalkDir(os.DirFS(string(f)), "charm.new", func(name string, _ fs.DirEntry, err error) error {
		if inside, ok := strings.CutPrefix(name, "charm.new/"); ok {
			b[inside] = true
		}
		return err
	})
	return b, err
}

// takeAlong puts what the charm in charm/ has made itself beside what charm.new
// has brought, which wins. Files are linked, not moved: until the folders are
// swapped the old one is whole, and a process that writes to one goes on.
func (f Folder) takeAlong(old brought) error {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	defer root.Close()
	m := &mover{root: root, brought: old, touched: map[string]bool{}}
	if err := m.folder("."); err != nil {
		return fmt.Errorf("cannot take along what the charm has made: %w", err)
	}
	return errors.Join(m.sync(), m.seal())
}

// mover takes a charm's own along.
type mover struct {
	root    *os.Root // the unit's folder
	brought brought
	made    []string        // the folders it has made, each after those that it lies in
	touched map[string]bool // the folders in which it has made anything
}

func from(name string) string { return path.Join("charm", name) }
func to(name string) string   { return path.Join("charm.new", name) }

// folder takes along what is in one folder. What vanishes meanwhile is no error:
// hooks stand still, what they have started does not.
func (m *mover) folder(dir string) error {
	f, err := m.root.Open(from(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if err == nil && e.Name() != "__pycache__" { // made from the old charm's code, and of no use to the new
			err = m.one(path.Join(dir, e.Name()), e)
		}
	}
	return err
}

func (m *mover) one(name string, e fs.DirEntry) error {
	there, err := m.root.Lstat(to(name))
	switch {
	case err == nil && there.IsDir() && e.IsDir():
		return m.folder(name)
	case err == nil:
		return nil // the new charm has something else by this name
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case e.IsDir() && m.brought[name]:
		return m.folder(name) // it is made if anything in it goes along
	case e.IsDir():
		if err := m.ensure(name); err != nil {
			return err
		}
		return m.folder(name)
	case m.brought[name]:
		return nil
	}
	if err := m.ensure(path.Dir(name)); err != nil {
		return err
	}
	m.touched[path.Dir(name)] = true
	err = m.link(name, e.Type())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ensure makes a folder, and those above it.
func (m *mover) ensure(dir string) error {
	if _, err := m.root.Lstat(to(dir)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.ensure(path.Dir(dir)); err != nil {
		return err
	}
	m.made = append(m.made, dir)
	m.touched[path.Dir(dir)], m.touched[dir] = true, true
	return m.root.Mkdir(to(dir), 0o700)
}

// link links one that is no folder, and copies it where it cannot be linked.
func (m *mover) link(name string, kind fs.FileMode) error {
	if err := m.root.Link(from(name), to(name)); err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch kind {
	case fs.ModeSymlink:
		target, err := m.root.Readlink(from(name))
		if err != nil {
			return err
		}
		return m.root.Symlink(target, to(name))
	case 0:
		return m.copy(name)
	}
	return nil // a socket or the like: who made it makes it again
}

// copy copies a file. No child may be made meanwhile: it would hold the file open
// for writing, and a hook that is open for writing cannot be executed.
func (m *mover) copy(name string) error {
	src, err := m.root.Open(from(name))
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&0o111 != 0 {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	dst, err := m.root.OpenFile(to(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Chmod(info.Mode()), dst.Sync(), dst.Close())
}

// seal gives the folders that were made the owner, as far as the agent may, and
// the permissions of those that they stand for.
func (m *mover) seal() error {
	for i := len(m.made) - 1; i >= 0; i-- {
		info, err := m.root.Lstat(from(m.made[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = m.root.Lchown(to(m.made[i]), int(s.Uid), int(s.Gid))
		}
		if err := m.root.Chmod(to(m.made[i]), info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// sync brings the folders to the disk. What is in the files is their writers' care.
func (m *mover) sync() error {
	for dir := range m.touched {
		f, err := m.root.Open(to(dir))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
