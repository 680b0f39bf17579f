package home

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state/osutil"
)

// PortableState returns the state's URL in a form that is valid in a copy of the environment's directory. files
// are the copies of credentials that the URL names, relative to the directory. The file of an SQLite store is not
// one of them.
func (e Environment) PortableState() (url string, files []string, err error) {
	if url, err = e.relativeURL(e.State); err != nil {
		return "", nil, err
	}

	_, err = mapCredentialFiles(url, func(_, path string) (string, error) {
		if !filepath.IsAbs(path) {
			files = append(files, path)
		}
		return path, nil
	})

	return url, files, err
}

// PackFolder writes a directory as a tar archive, whose entry "." has the directory's own mode and owner. It
// leaves out sockets and other special files. The directory may be in use: a file that grows is written with its
// former size, a file that shrinks is padded with zeros, and a removed file is left out. changed contains the
// paths of the files that were padded, or left out because they were removed. These paths begin with dir.
func PackFolder(w io.Writer, dir string) (changed []string, err error) {
	t := tar.NewWriter(w)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, entryErr error) error {
		name, relErr := filepath.Rel(dir, path)
		if relErr != nil {
			return errors.Join(entryErr, relErr)
		}

		if entryErr == nil {
			entryErr = packFile(t, path, name, entry)
		}
		if errors.Is(entryErr, fs.ErrNotExist) || errors.Is(entryErr, errShrunk) {
			changed = append(changed, path)
			return nil
		}
		return entryErr
	})

	return changed, errors.Join(err, t.Close())
}

var errShrunk = errors.New("the file became shorter while it was read")

// packFile writes one file, directory or symlink to the archive, under the given name. It skips special files. If a file
// becomes shorter while packFile reads it, packFile pads it with zeros and returns errShrunk.
func packFile(t *tar.Writer, path, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	isSymlink := info.Mode().Type() == fs.ModeSymlink
	isSpecial := !info.Mode().IsRegular() && !info.IsDir() && !isSymlink
	if isSpecial {
		return nil
	}

	linkTarget := ""
	if isSymlink {
		if linkTarget, err = os.Readlink(path); err != nil {
			return err
		}
	}

	header, err := tar.FileInfoHeader(info, linkTarget)
	if err != nil {
		return err
	}

	header.Name = name
	header.Format = tar.FormatPAX
	if info.Mode().IsRegular() {
		return packContent(t, path, header)
	}
	return t.WriteHeader(header)
}

// packContent writes a header and as many bytes of the file as the header promises. It returns errShrunk if the file has
// become shorter.
func packContent(t *tar.Writer, path string, header *tar.Header) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	if err := t.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(t, io.LimitReader(file, header.Size))
	if err != nil {
		return err
	}

	if n < header.Size {
		_, err = t.Write(make([]byte, header.Size-n))
		err = errors.Join(err, errShrunk)
	}

	return err
}

// UnpackFolder restores dir, which must not exist, from an archive that PackFolder has written. It first unpacks
// into a directory beside dir, and then renames that directory, so that dir never has only a part of the content.
// It writes no other files, whatever the names in the archive. It leaves out the entries at the paths in without,
// which are relative to dir. It restores the modes of files and directories, and as root also the owners.
func UnpackFolder(r io.Reader, dir string, without ...string) error {
	temporary := dir + ".restored"
	// Perhaps an interrupted call has left a part of the content.
	if err := removeAll(temporary); err != nil {
		return err
	}
	if err := unpackTemporary(r, temporary, without); err != nil {
		return errors.Join(fmt.Errorf("cannot unpack the archive into %q: %w", dir, err), removeAll(temporary))
	}

	if err := os.Rename(temporary, dir); err != nil {
		return errors.Join(err, removeAll(temporary))
	}
	return osutil.SyncDir(filepath.Dir(dir))
}

// unpackTemporary creates the directory and its parents, and unpacks the archive into it, except the entries at
// the paths in without.
func unpackTemporary(r io.Reader, temporary string, without []string) error {
	if err := osutil.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	// With OwnWriter, Untar restores modes and owners, and keeps symlinks that lead out of the directory.
	if err := osutil.Untar(context.Background(), temporary, r, osutil.OwnWriter); err != nil {
		return err
	}

	for _, name := range without {
		if err := removeAll(filepath.Join(temporary, name)); err != nil {
			return err
		}
	}

	return osutil.SyncDir(temporary)
}
