package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
)

// ManifestFile is the manifest's name, in a release and beside an executable.
const ManifestFile = "manifest.yaml"

// Manifest gets the plan of a published release: its file manifest.yaml, or the
// one in its tarball or package, or else the one that is built in, which such a
// release has. All is verified before it is read. dir is for what has to be downloaded.
func (s *Source) Manifest(ctx context.Context, version, dir string) (Manifest, error) {
	all, err := s.Releases(ctx)
	if err != nil {
		return Manifest{}, err
	}
	r, err := Lookup(version, s.config.TagPrefix, all)
	if err != nil {
		return Manifest{}, err
	}
	if _, err := r.Find(ManifestFile); err == nil {
		file, err := s.Fetch(ctx, Wanted{Version: version, Name: ManifestFile, Dir: dir})
		if err != nil {
			return Manifest{}, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return Manifest{}, err
		}
		return ReadManifest(r.Tag+"/"+ManifestFile, data)
	}
	kind := form(r)
	file, err := s.Fetch(ctx, Wanted{Version: version, Form: kind, Arch: runtime.GOARCH, Dir: dir})
	if err != nil {
		return Manifest{}, fmt.Errorf("it has no file %s, and its %s cannot be had: %w", ManifestFile, kind, err)
	}
	if kind == Deb {
		return manifestInDeb(ctx, file)
	}
	return manifestIn(file)
}

// form is what the release has for this architecture: a package only if no tarball.
func form(r Release) string {
	_, v, err := ParseTag(r.Tag)
	if err != nil {
		return Tarball
	}
	_, noTarball := r.Find(AssetName(Tarball, v, runtime.GOARCH))
	if _, err := r.Find(AssetName(Deb, v, runtime.GOARCH)); err == nil && noTarball != nil {
		return Deb
	}
	return Tarball
}

// manifestIn reads the plan in a tarball.
func manifestIn(tarball string) (Manifest, error) {
	f, err := os.Open(tarball)
	if err != nil {
		return Manifest{}, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot read %q: %w", path.Base(tarball), err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return DefaultManifest()
		}
		if err != nil {
			return Manifest{}, fmt.Errorf("cannot read %q: %w", path.Base(tarball), err)
		}
		if path.Base(h.Name) != ManifestFile {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(files, maxSmall))
		if err != nil {
			return Manifest{}, err
		}
		return ReadManifest(path.Base(tarball)+"/"+ManifestFile, data)
	}
}
