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
	"strings"
)

// Untar unpacks a tar archive into an empty directory. The archive may hold files, directories and links
// only. own says that bijou has written the archive: then modes are kept, owners too (for root), and
// symlinks lead anywhere. In other archives no link may point outside, and files lose set-user-id bits.
func Untar(ctx context.Context, dir string, archive io.Reader, own bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return InFolder(unpackAll(ctx, root, archive, own), dir)
}

// unpackAll unpacks the archive's entries into root.
func unpackAll(ctx context.Context, root *os.Root, archive io.Reader, own bool) error {
	u := unpacker{root: root, own: own}
	for entries := tar.NewReader(archive); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return u.checkLinks()
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
}

// writeEntry writes an entry of the archive. It relies on root to refuse a name that leads out of it.
func (u *unpacker) writeEntry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	if !u.own {
		name = path.Clean(strings.TrimLeft(h.Name, "/"))
	}

	switch {
	case name == "." || h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case !filepath.IsLocal(name):
		return fmt.Errorf("the entry %q leads out of the archive", h.Name)
	}

	err := u.root.MkdirAll(path.Dir(name), 0o755)
	if err != nil {
		return err
	}
	if err := u.write(name, h, content); err != nil {
		return err
	}
	if u.own && os.Geteuid() == 0 {
		return u.root.Lchown(name, h.Uid, h.Gid)
	}

	return nil
}

// write writes one entry of the archive.
func (u *unpacker) write(name string, h *tar.Header, content io.Reader) error {
	mode := fs.FileMode(h.Mode) & 0o777
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, mode|0o700) // it may be read-only, and is to be filled
	case tar.TypeReg:
		return u.writeFile(name, mode, content)
	case tar.TypeSymlink:
		return u.writeLink(name, h.Linkname)
	case tar.TypeLink:
		return u.root.Link(path.Clean(h.Linkname), name)
	}

	return fmt.Errorf("the entry %q is neither file, folder nor link", h.Name)
}

func (u *unpacker) writeFile(name string, mode fs.FileMode, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = u.fill(f, mode, content)
	return errors.Join(err, f.Close())
}

// fill writes the content and syncs it. In an archive of our own it sets the mode once more, since the umask may
// have taken bits from it.
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

// writeLink makes a symbolic link. Unless the archive is one of bijou's own, the link must not lead out of it.
func (u *unpacker) writeLink(name, target string) error {
	if u.own {
		return u.root.Symlink(target, name)
	}
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("the link %q leads out of the archive, to %q", name, target)
	}

	u.links = append(u.links, name)
	return u.root.Symlink(target, name)
}

// checkLinks makes sure that links stay within the archive, also those that lead through
// one another. Their targets need not exist.
func (u *unpacker) checkLinks() error {
	for _, name := range u.links {
		if _, err := u.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the link %q leads out of the archive, or nowhere: %w", name, err)
		}
	}
	return nil
}
