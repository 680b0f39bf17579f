package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
)

// manifestInDeb reads the plan in a package: the one beside the program, as that
// finds it once it is installed, or the built-in one. Debian's own program takes the
// package apart, whichever way it is compressed.
func manifestInDeb(ctx context.Context, deb string) (Manifest, error) {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot look into %s without dpkg-deb; publish the file %s, or do this on a boot server", path.Base(deb), ManifestFile)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, program, "--fsys-tarfile", deb)
	out, err := c.StdoutPipe()
	if err != nil {
		return Manifest{}, err
	}
	if err := c.Start(); err != nil {
		return Manifest{}, err
	}
	data, err := besideProgram(tar.NewReader(out))
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, c.Wait()); err != nil {
		return Manifest{}, fmt.Errorf("cannot read %q: %w", path.Base(deb), err)
	}
	if data == nil {
		return DefaultManifest()
	}
	return ReadManifest(path.Base(deb)+"/"+ManifestFile, data)
}

// besideProgram finds the manifest in the folder of a program called bijou; nil is none.
func besideProgram(files *tar.Reader) ([]byte, error) {
	manifests, programs := map[string][]byte{}, map[string]bool{}
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch dir := path.Dir(h.Name); {
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeLink:
		case path.Base(h.Name) == "bijou":
			programs[dir] = true
		case path.Base(h.Name) == ManifestFile:
			if manifests[dir], err = io.ReadAll(io.LimitReader(files, maxSmall)); err != nil {
				return nil, err
			}
		}
	}
	for dir, data := range manifests {
		if programs[dir] {
			return data, nil
		}
	}
	return nil, nil
}
