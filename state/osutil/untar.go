package osutil

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ArchiveWriter is the program that has written an archive for [Untar].
type ArchiveWriter int

const (
	AnyWriter ArchiveWriter = iota // symlinks must not lead out of the archive
	OwnWriter                      // bijou: Untar ignores the umask, keeps the mode of dir, and as root keeps owners
)

// Untar unpacks a tar archive into an empty directory. The archive must contain only files, directories and
// links. Set-user-id and similar bits are dropped, except those of directories of an [OwnWriter], where they decide
// how users share files.
func Untar(ctx context.Context, dir string, archive io.Reader, writer ArchiveWriter) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return InFolder(unpackAll(ctx, root, archive, writer == OwnWriter), dir)
}

// unpackAll unpacks the archive's entries into root.
func unpackAll(ctx context.Context, root *os.Root, archive io.Reader, own bool) error {
	u := unpacker{root: root, own: own}
	for entries := tar.NewReader(archive); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			if err := u.checkLinks(); err != nil {
				return err
			}
			return u.finishDirs()
		}
		if err != nil {
			return err
		}

		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.writeEntry(header, entries); err != nil {
			return err
		}
	}
}

type unpacker struct {
	root  *os.Root
	own   bool
	links []string
	dirs  []*tar.Header // the directories of bijou's own archive, parents first
}

// writeEntry writes an entry of the archive. root rejects names that lead out of it through a symlink.
func (u *unpacker) writeEntry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	if !u.own {
		name = path.Clean(strings.TrimLeft(h.Name, "/"))
	}

	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if u.own && h.Typeflag == tar.TypeDir {
		u.dirs = append(u.dirs, h)
	}
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the entry %q leads outside of the archive", h.Name)
	}

	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := u.write(name, h, content); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return nil
	}
	return u.keepOwner(name, h)
}

// keepOwner sets the owner of a file of bijou's own archive, if this process runs as root.
func (u *unpacker) keepOwner(name string, h *tar.Header) error {
	if !u.own || os.Geteuid() != 0 {
		return nil
	}
	return u.root.Lchown(name, h.Uid, h.Gid)
}

// finishDirs sets the owners and modes of directories. It runs after all entries are written, since a directory
// may be read-only in the archive, and sets those of parents last.
func (u *unpacker) finishDirs() error {
	for _, h := range slices.Backward(u.dirs) {
		name := path.Clean(h.Name)
		if err := u.keepOwner(name, h); err != nil {
			return err
		}
		mode := h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetgid | fs.ModeSticky)
		if err := u.root.Chmod(name, mode); err != nil {
			return err
		}
	}
	return nil
}

// write writes one entry of the archive.
func (u *unpacker) write(name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(h.Mode) & 0o777
	switch h.Typeflag {
	case tar.TypeDir:
		// The directory may be read-only in the archive, but its entries must still be written. finishDirs sets
		// the mode of bijou's own directories.
		return u.root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
		return u.writeRegular(name, mode, content)
	case tar.TypeSymlink:
		return u.writeLink(name, h.Linkname)
	case tar.TypeLink:
		return u.root.Link(path.Clean(h.Linkname), name)
	}

	return fmt.Errorf("the entry %q is neither a file, a directory nor a symlink", h.Name)
}

func (u *unpacker) writeRegular(name string, mode fs.FileMode, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = u.fill(f, mode, content)
	return errors.Join(err, f.Close())
}

// fill writes the content and syncs it. For bijou's own archives it also sets the mode, since the umask may have
// removed bits from it.
func (u *unpacker) fill(f *os.File, mode fs.FileMode, content io.Reader) error {
	if _, err := io.Copy(f, content); err != nil {
		return err
	}

	if u.own {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}

	return f.Sync()
}

// writeLink creates a symlink. Unless the archive is bijou's own, the symlink must not lead out of it.
func (u *unpacker) writeLink(name, target string) error {
	if u.own {
		return u.root.Symlink(target, name)
	}
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("the symlink %q leads outside of the archive, to %q", name, target)
	}

	u.links = append(u.links, name)
	return u.root.Symlink(target, name)
}

// checkLinks returns an error if a symlink leads out of the archive, possibly through other symlinks. The
// symlinks' targets need not exist.
func (u *unpacker) checkLinks() error {
	for _, name := range u.links {
		if _, err := u.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the symlink %q leads outside of the archive, or does not lead to a file: %w", name, err)
		}
	}
	return nil
}
