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

// readDebPlan leaves the unpacking to dpkg-deb, which knows every compression.
func readDebPlan(ctx context.Context, deb string) ([]byte, error) {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return nil, fmt.Errorf("dpkg-deb is missing; publish the file %s, or do this on a boot server", ManifestFile)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, program, "--fsys-tarfile", deb)
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	data, err := findPlan(out)
	if err != nil {
		cancel()
	}
	return data, errors.Join(err, c.Wait())
}

// findPlan returns the manifest in the folder of a program called bijou; nil if there is
// none.
func findPlan(archive io.Reader) ([]byte, error) {
	manifests, programs := map[string][]byte{}, map[string]bool{}
	for files := tar.NewReader(archive); ; {
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
			if manifests[dir], err = io.ReadAll(io.LimitReader(files, maxSmallSize)); err != nil {
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
