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

// ManifestFile is the name of the manifest, in a release and next to an executable.
const ManifestFile = "manifest.yaml"

// Manifest fetches the plan of a published release. It uses the file manifest.yaml or, without that file, the
// manifest in the release's tarball or Debian package for this host. If that package contains no manifest, it
// returns the manifest that is built into this program, since the program in the package also uses its built-in
// one. It verifies the sum of each file before reading a manifest from it. dir is the directory for downloads.
func (s *Source) Manifest(ctx context.Context, version, dir string) (Manifest, error) {
	r, sums, err := s.lookupRelease(ctx, version)
	if err != nil {
		return Manifest{}, err
	}

	p, err := s.fetchPlan(ctx, r, sums, chooseForm(r), dir)
	if err != nil {
		return Manifest{}, err
	}
	if p.data == nil {
		return DefaultManifest()
	}

	return ReadManifest(p.file, p.data)
}

// Digests returns the digests of a release's SHA256SUMS and of its plan. The plan is the file manifest.yaml or,
// without that file, the manifest in the package of the given form for this host. If there is no plan in either,
// its digest is "". If SHA256SUMS still has its known digest, Digests returns known, and downloads nothing else.
// dir is the directory for downloads.
func (s *Source) Digests(
	ctx context.Context,
	r Release,
	form string,
	known record.Digests,
	dir string,
) (record.Digests, error) {
	sums, err := s.readTrustedSums(ctx, r)
	if err != nil {
		return record.Digests{}, err
	}
	if sums.digest == known.Sums {
		return known, nil
	}

	d := record.Digests{Sums: sums.digest}
	name, err := r.assetName(form, runtime.GOARCH)
	if err != nil {
		return d, err
	}
	_, planErr := r.Find(ManifestFile)
	_, packageErr := r.Find(name)
	if planErr != nil && packageErr != nil {
		// The release has neither file, so its plan is unknown.
		return d, nil
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
	sums, err := s.readTrustedSums(ctx, r)
	return sums.digest, err
}

// planFile is a manifest and the file that contained it. data is nil if there is no manifest.
type planFile struct {
	file string // as errors name it
	data []byte
}

// fetchPlan returns the release's manifest. The manifest is a separate file or, in older releases, part of
// the package of the given form for this host. The result's data is nil if that package contains no manifest.
// dir is the directory for downloads.
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
		return planFile{}, fmt.Errorf("the release has no file %s, and its %s cannot be fetched: %w", ManifestFile, form, err)
	}
	data, err := readPackagedPlan(ctx, form, file)
	return planFile{name + "/" + ManifestFile, data}, err
}

// PackagedPlan is the plan in one file of a release. Digest is "" if the file contains no plan.
type PackagedPlan struct{ File, Version, Digest string }

// Plans reads the plans in the release's file manifest.yaml and in the packages of all architectures. dir
// receives the downloaded files.
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

		file, err := s.fetchAsset(ctx, r, sums, a.Name, dir)
		if err != nil {
			return nil, err
		}
		p, err := describePlan(ctx, kind, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}

		p.File = a.Name
		all = append(all, p)
	}

	return all, nil
}

// describePlan returns the version and the digest of the plan in a downloaded file, whose kind is a result of
// kindOfAsset. Both are empty if the file contains no plan.
func describePlan(ctx context.Context, kind, file string) (p PackagedPlan, err error) {
	data, err := readPackagedPlan(ctx, kind, file)
	if err != nil {
		return p, err
	}
	if data == nil {
		return p, nil
	}

	p.Digest, err = PlanDigest(data)
	if err != nil {
		return p, err
	}
	p.Version, err = VersionIn(data)
	return p, err
}

// kindOfAsset returns the kind of an asset that can contain a plan: ManifestFile, Deb or Tarball. It
// returns "" for other assets, such as files of components.
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

// lookupRelease returns the release of the given version, and its verified sums.
func (s *Source) lookupRelease(ctx context.Context, version string) (r Release, sums verifiedSums, err error) {
	r, err = s.lookup(ctx, version)
	if err != nil {
		return r, sums, err
	}

	sums, err = s.readTrustedSums(ctx, r)
	return r, sums, err
}

// chooseForm returns [Tarball] if the release has a tarball for this architecture, or [Deb] if it has only a
// package. It returns Tarball if it has neither.
func chooseForm(r Release) string {
	for _, form := range []string{Tarball, Deb} {
		// If the tag has no version, no asset has this name.
		name, _ := r.assetName(form, runtime.GOARCH)
		if _, err := r.Find(name); err == nil {
			return form
		}
	}

	return Tarball
}

// readPackagedPlan returns the manifest in a file of a release, whose kind is Deb, Tarball or ManifestFile. From
// a package, this is the manifest that the program will find next to itself after its installation. It is nil
// if the package contains none, since the program then uses its built-in manifest.
func readPackagedPlan(ctx context.Context, kind, file string) (data []byte, err error) {
	switch kind {
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

// readTarballPlan reads the manifest in a tarball. It returns nil if there is none.
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

// errNoUnpacker is returned if the program that unpacks packages is missing on this host.
var errNoUnpacker = errors.New("dpkg-deb is not installed")

// readDebPlan reads the manifest in a Debian package. It returns nil if there is none. It unpacks the package with
// dpkg-deb, which supports all compressions.
func readDebPlan(ctx context.Context, deb string) ([]byte, error) {
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return nil, fmt.Errorf("%w; publish the file %s, or run this command on a boot server",
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
		// Without a reader, the program would block.
		cancel()
	}
	waitErr := c.Wait()
	return data, errors.Join(err, waitErr)
}

// readManifestFile reads a manifest. It returns an error if the file is larger than maxSmallSize.
func readManifestFile(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSmallSize+1))
	if err != nil {
		return data, err
	}
	if len(data) > maxSmallSize {
		return data, fmt.Errorf("the file %s has more than %d bytes", ManifestFile, maxSmallSize)
	}

	return data, nil
}

// readManifestAt reads the manifest at the path, as readManifestFile does.
func readManifestAt(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readManifestFile(f)
}

// findPlan returns the manifest next to a program called bijou in the archive. It returns nil if there is no
// such manifest.
func findPlan(archive io.Reader) ([]byte, error) {
	// Both are collected by directory first, since a program can follow its manifest in the archive.
	manifests := map[string][]byte{}
	programs := map[string]bool{}

	files := tar.NewReader(archive)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}

		dir := path.Dir(h.Name)
		switch {
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeLink:
			// Only regular files and hard links count.
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
