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
	// AnyWriter is any program. Untar refuses an archive with a symlink that leads out of the archive.
	AnyWriter ArchiveWriter = iota
	// OwnWriter is bijou. Untar keeps the targets of symlinks. It sets the modes of files and directories
	// regardless of the umask, and also the mode of the directory that it unpacks into. As root it also
	// restores the owners.
	OwnWriter
)

// Untar unpacks a tar archive into an empty directory. The archive must contain only files, directories, symlinks
// and hard links. Untar drops the set-user-id, set-group-id and sticky bits. But if writer is OwnWriter, it keeps
// the last two of directories, where they decide how users share files. After an error, entries that were
// unpacked before it stay in the directory.
func Untar(ctx context.Context, dir string, archive io.Reader, writer ArchiveWriter) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return InFolder(unpackAll(ctx, root, archive, writer == OwnWriter), dir)
}

// unpackAll unpacks the archive's entries into root. isOwn says whether bijou has written the archive.
func unpackAll(ctx context.Context, root *os.Root, archive io.Reader, isOwn bool) error {
	u := unpacker{root: root, isOwn: isOwn}
	entries := tar.NewReader(archive)
	for {
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

// unpacker unpacks one archive.
type unpacker struct {
	root  *os.Root
	isOwn bool          // whether bijou has written the archive
	links []string      // the symlinks that checkLinks must check
	dirs  []*tar.Header // the directories whose modes finishDirs must set, parents first
}

// writeEntry writes an entry of the archive. It returns an error if the entry's name leads out of the
// archive. root refuses names that lead out of it through a symlink. For a directory in bijou's own archive,
// writeEntry leaves the mode and owner to finishDirs.
func (u *unpacker) writeEntry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	// Other programs can write absolute names, which are meant relative to the archive.
	if !u.isOwn {
		name = path.Clean(strings.TrimLeft(h.Name, "/"))
	}

	// An entry of this type has only attributes, and does not describe a file.
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	// finishDirs also sets the mode and owner of the directory that the archive is unpacked into.
	if u.isOwn && h.Typeflag == tar.TypeDir {
		u.dirs = append(u.dirs, h)
	}
	// This is the directory that the archive is unpacked into, which exists.
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the entry %q leads outside of the archive", h.Name)
	}

	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := u.writeNamed(name, h, content); err != nil {
		return err
	}

	if h.Typeflag == tar.TypeDir {
		// finishDirs sets the owner, if bijou has written the archive.
		return nil
	}
	return u.restoreOwner(name, h)
}

// restoreOwner sets the owner of a file to its owner in the archive, if bijou has written the archive and
// this process runs as root.
func (u *unpacker) restoreOwner(name string, h *tar.Header) error {
	if !u.isOwn || os.Geteuid() != 0 {
		return nil
	}
	return u.root.Lchown(name, h.Uid, h.Gid)
}

// finishDirs sets the owners and modes of the directories that writeEntry has left to it, those of parents last. It
// must be called after all entries were written, since a directory may be read-only in the archive.
func (u *unpacker) finishDirs() error {
	for _, h := range slices.Backward(u.dirs) {
		name := path.Clean(h.Name)
		if err := u.restoreOwner(name, h); err != nil {
			return err
		}
		mode := h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetgid | fs.ModeSticky)
		if err := u.root.Chmod(name, mode); err != nil {
			return err
		}
	}
	return nil
}

// writeNamed writes an entry of the archive at name, without its owner. It returns an error if the entry is
// not a file, a directory or a link.
func (u *unpacker) writeNamed(name string, h *tar.Header, content io.Reader) error {
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

// writeRegular creates a regular file and syncs it.
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

	if u.isOwn {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}

	return f.Sync()
}

// writeLink creates a symlink. Unless bijou has written the archive, writeLink records the symlink for checkLinks,
// or returns an error if the target is outside of the archive.
func (u *unpacker) writeLink(name, target string) error {
	if u.isOwn {
		return u.root.Symlink(target, name)
	}
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("the symlink %q leads outside of the archive, to %q", name, target)
	}

	u.links = append(u.links, name)
	return u.root.Symlink(target, name)
}

// checkLinks returns an error if a symlink in u.links leads out of the archive, possibly through other symlinks,
// or cannot be followed, for example because of a loop. The symlinks' targets need not exist. checkLinks must be
// called after all entries were written.
func (u *unpacker) checkLinks() error {
	for _, name := range u.links {
		// Stat follows symlinks, and returns an error if one of them leads out of root.
		if _, err := u.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the symlink %q leads outside of the archive, or does not lead to a file: %w", name, err)
		}
	}
	return nil
}
