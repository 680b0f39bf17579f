package host

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
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

// Unpack unpacks a tar archive, gzip-compressed or not, into a new folder. Nothing of it
// lies or points outside of that; it may hold files, folders and links only, and no file
// keeps set-user-id bits.
func Unpack(ctx context.Context, archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := decompress(f)
	if err != nil {
		return err
	}
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer root.Close()
	var links []string
	for entries := tar.NewReader(r); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return checkLinks(root, links)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = writeEntry(root, header, entries)
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeSymlink {
			links = append(links, entryName(header))
		}
	}
}

// checkLinks makes sure that links stay within the archive, also those that lead through
// one another. Their targets need not exist.
func checkLinks(root *os.Root, links []string) error {
	for _, name := range links {
		if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the link %q leads out of the archive, or nowhere: %w", name, err)
		}
	}
	return nil
}

func entryName(h *tar.Header) string { return path.Clean(strings.TrimLeft(h.Name, "/")) }

func decompress(f io.Reader) (io.Reader, error) {
	r := bufio.NewReader(f)
	if magic, err := r.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		return gzip.NewReader(r)
	}
	return r, nil
}

// writeEntry relies on root to refuse every name that leads out of it.
func writeEntry(root *os.Root, h *tar.Header, data io.Reader) error {
	name := entryName(h)
	if name == "." || name == "" {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the entry %q leads out of the archive", h.Name)
	}
	mode := fs.FileMode(h.Mode) & 0o777
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeReg:
		return writeFile(root, name, mode, data)
	case tar.TypeSymlink:
		return writeLink(root, name, h.Linkname)
	case tar.TypeLink:
		return root.Link(path.Clean(h.Linkname), name)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fmt.Errorf("the entry %q is neither file, folder nor link", h.Name)
}

func writeFile(root *os.Root, name string, mode fs.FileMode, data io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func writeLink(root *os.Root, name, target string) error {
	if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("the link %q leads out of the archive, to %q", name, target)
	}
	return root.Symlink(target, name)
}
