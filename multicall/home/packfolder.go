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

// PortableState returns the state's URL in a form that is valid in a copy of the environment's
// directory. files are the files in the directory that the URL names.
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

// PackFolder writes a directory as a tar archive, whose entry "." has the directory's own mode and owner. The
// directory may be in use. A file that grows is written with its former size. A file that shrinks is padded
// with zeros, and a removed file is left out. changed names the files that were padded or left out. Sockets
// and other special files are left out.
func PackFolder(w io.Writer, dir string) (changed []string, err error) {
	t := tar.NewWriter(w)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(dir, path)
		if err == nil && rerr == nil {
			err = packFile(t, path, name, d)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errShrunk) {
			changed = append(changed, path)
			err = nil
		}
		return errors.Join(err, rerr)
	})

	return changed, errors.Join(err, t.Close())
}

var errShrunk = errors.New("the file became shorter while it was read")

// packFile writes one file, directory or symlink to the archive. It returns errShrunk if the file becomes
// shorter during this.
func packFile(t *tar.Writer, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() && info.Mode().Type() != fs.ModeSymlink {
		return err
	}

	target := ""
	if info.Mode().Type() == fs.ModeSymlink {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}

	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}

	header.Name = name
	header.Format = tar.FormatPAX
	if !info.Mode().IsRegular() {
		return t.WriteHeader(header)
	}
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

// UnpackFolder restores a directory that PackFolder has written, completely or not at all. It writes no files
// outside of the directory, and leaves out the entries named in without. It restores the modes of files and
// directories, and their owners only as root.
func UnpackFolder(r io.Reader, dir string, without ...string) error {
	beside := dir + ".restored"
	if err := removeAll(beside); err != nil {
		return err
	}
	if err := unpackBeside(r, beside, without); err != nil {
		return errors.Join(fmt.Errorf("cannot unpack the archive into %q: %w", dir, err), removeAll(beside))
	}

	if err := os.Rename(beside, dir); err != nil {
		return errors.Join(err, removeAll(beside))
	}
	return osutil.SyncDir(filepath.Dir(dir))
}

// unpackBeside unpacks the archive into a new directory, without the entries named in without.
func unpackBeside(r io.Reader, beside string, without []string) error {
	if err := osutil.MkdirAll(beside, 0o755); err != nil {
		return err
	}
	if err := osutil.Untar(context.Background(), beside, r, osutil.OwnWriter); err != nil {
		return err
	}

	for _, name := range without {
		if err := removeAll(filepath.Join(beside, name)); err != nil {
			return err
		}
	}

	return osutil.SyncDir(beside)
}
