package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"

	"bijou/updater/record"
)

// ManifestFile is the manifest's name, in a release and beside an executable.
const ManifestFile = "manifest.yaml"

// Manifest fetches the plan of a published release: its file manifest.yaml, or the one in its tarball or
// package, or else the one built into this program, which such a release has too. It verifies each file
// before it reads it. dir is for downloads.
func (s *Source) Manifest(ctx context.Context, version, dir string) (Manifest, error) {
	r, sums, err := s.lookupRelease(ctx, version)
	if err != nil {
		return Manifest{}, err
	}

	p, err := s.fetchPlan(ctx, r, sums, formOf(r), dir)
	if err == nil && p.data == nil {
		return DefaultManifest()
	}
	if err != nil {
		return Manifest{}, err
	}

	return ReadManifest(p.file, p.data)
}

// Digests returns the digests of a release. The plan is the file manifest.yaml, or else the one in the
// package of that form for this machine, if there is such a package. It downloads nothing if known is still
// valid. dir is for downloads.
func (s *Source) Digests(
	ctx context.Context,
	r Release,
	form string,
	known record.Digests,
	dir string,
) (record.Digests, error) {
	sums, err := s.trustedSums(ctx, r)
	if err != nil || sums.digest == known.Sums {
		return known, err
	}

	d := record.Digests{Sums: sums.digest}
	name, err := r.assetName(form, runtime.GOARCH)
	_, noFile := r.Find(ManifestFile)
	if _, noPackage := r.Find(name); err != nil || noFile != nil && noPackage != nil {
		return d, err
	}

	p, err := s.fetchPlan(ctx, r, sums, form, dir)
	if err != nil {
		return d, err
	}

	if p.data != nil {
		d.Plan, err = PlanDigest(p.data)
	}

	return d, err
}

// Sums returns the digest of a release's verified SHA256SUMS.
func (s *Source) Sums(ctx context.Context, r Release) (string, error) {
	sums, err := s.trustedSums(ctx, r)
	return sums.digest, err
}

// planFile is a manifest and where it was found; data is nil if there is none.
type planFile struct {
	file string
	data []byte
}

// fetchPlan returns the release's manifest: a file of its own or, in older releases, one inside the package.
func (s *Source) fetchPlan(ctx context.Context, r Release, sums verifiedSums, form, dir string) (planFile, error) {
	if _, err := r.Find(ManifestFile); err == nil {
		file, err := s.fetchAsset(ctx, r, sums, ManifestFile, dir)
		if err != nil {
			return planFile{}, err
		}
		data, err := readManifestAt(file)
		return planFile{r.Tag + "/" + ManifestFile, data}, err
	}

	name, err := r.assetName(form, runtime.GOARCH)
	if err != nil {
		return planFile{}, err
	}

	file, err := s.fetchAsset(ctx, r, sums, name, dir)
	if err != nil {
		return planFile{}, fmt.Errorf("it has no file %s, and its %s cannot be had: %w", ManifestFile, form, err)
	}
	data, err := readPackagedPlan(ctx, form, file)
	return planFile{name + "/" + ManifestFile, data}, err
}

// PackagedPlan is the plan in one file of a release; Digest is "" if there is none in it.
type PackagedPlan struct{ File, Version, Digest string }

// Plans reads the release's file manifest.yaml and all its packages, of every architecture.
func (s *Source) Plans(ctx context.Context, version, dir string) (all []PackagedPlan, err error) {
	r, sums, err := s.lookupRelease(ctx, version)
	if err != nil {
		return nil, err
	}

	for _, a := range r.Assets {
		kind := kindOfAsset(a.Name)
		if kind == "" {
			continue
		}

		p := PackagedPlan{File: a.Name}
		file, err := s.fetchAsset(ctx, r, sums, a.Name, dir)
		if err != nil {
			return nil, err
		}

		data, err := readPackagedPlan(ctx, kind, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		if data != nil {
			p.Digest, err = PlanDigest(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.Name, err)
			}
		}

		p.Version, err = VersionIn(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		all = append(all, p)
	}

	return all, nil
}

// kindOfAsset returns which kind of file with a plan the asset is; "" for assets without one, as files of
// components.
func kindOfAsset(name string) string {
	switch {
	case name == ManifestFile:
		return ManifestFile
	case strings.HasPrefix(name, "neco_") && path.Ext(name) == ".deb":
		return Deb
	case strings.HasPrefix(name, "bijou_") && strings.HasSuffix(name, ".tar.gz"):
		return Tarball
	}

	return ""
}

func (s *Source) lookupRelease(ctx context.Context, version string) (r Release, sums verifiedSums, err error) {
	r, err = s.lookup(ctx, version)
	if err != nil {
		return r, sums, err
	}

	sums, err = s.trustedSums(ctx, r)
	return r, sums, err
}

// formOf returns the form in which to fetch a release: a tarball for this architecture, or else a package.
func formOf(r Release) string {
	for _, form := range []string{Tarball, Deb} {
		name, _ := r.assetName(form, runtime.GOARCH) // a tag without a version has neither
		if _, err := r.Find(name); err == nil {
			return form
		}
	}

	return Tarball
}

// readPackagedPlan reads the manifest beside the program, where that finds it once it is
// installed. It returns nil if there is none, so that the built-in one counts.
func readPackagedPlan(ctx context.Context, form, file string) (data []byte, err error) {
	switch form {
	case Deb:
		data, err = readDebPlan(ctx, file)
	case Tarball:
		data, err = readTarballPlan(file)
	default:
		data, err = readManifestAt(file)
	}
	if err != nil {
		return data, fmt.Errorf("cannot read %q: %w", path.Base(file), err)
	}

	return data, nil
}

func readTarballPlan(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	data, err := findPlan(z)
	return data, errors.Join(err, z.Close())
}

var errNoUnpacker = errors.New("dpkg-deb is missing")

// readDebPlan reads the manifest inside a package. dpkg-deb unpacks it, since that knows every compression.
func readDebPlan(ctx context.Context, deb string) ([]byte, error) {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return nil, fmt.Errorf("%w; publish the file %s, or do this on a boot server",
			errNoUnpacker, ManifestFile)
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
	ended := c.Wait()
	return data, errors.Join(err, ended)
}

// readManifestFile reads a manifest. It returns an error if the file is too large to be one.
func readManifestFile(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSmallSize+1))
	if err != nil {
		return data, err
	}
	if len(data) > maxSmallSize {
		return data, fmt.Errorf("its %s has more than %d bytes", ManifestFile, maxSmallSize)
	}

	return data, nil
}

func readManifestAt(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readManifestFile(f)
}

// findPlan returns the manifest beside a program called bijou in the archive; nil if there is none.
func findPlan(archive io.Reader) ([]byte, error) {
	manifests := map[string][]byte{}
	programs := map[string]bool{}

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
			// It is not a file.
		case path.Base(h.Name) == "bijou":
			programs[dir] = true
		case path.Base(h.Name) == ManifestFile:
			if manifests[dir], err = readManifestFile(files); err != nil {
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
