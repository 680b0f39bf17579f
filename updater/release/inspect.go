package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
	"bijou/updater/record"
)

// RefusedError is the error of a release that cannot be installed as it is published. Asking again
// does not help until its publisher changes it.
type RefusedError struct {
	Why  string
	Sums string // the digest of its SHA256SUMS; "": not known
}

// Error returns why.
func (e RefusedError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return RefusedError{Why: fmt.Sprintf(format, args...)} }

// Package is a way in which releases come to a server.
type Package struct {
	Form string // Deb or Tarball
	Arch string // in Go's words
}

// String returns the package as presences have it: FORM/ARCH.
func (p Package) String() string { return p.Form + "/" + p.Arch }

// ParsePackage reads FORM/ARCH; ok is false if it is another text.
func ParsePackage(s string) (p Package, ok bool) {
	p.Form, p.Arch, ok = strings.Cut(s, "/")
	return p, ok && (p.Form == Deb || p.Form == Tarball) && p.Arch != ""
}

// Inspection says for whom a release is inspected.
type Inspection struct {
	Form    string    // in which this program was installed
	Arch    string    // for which; "": this machine's
	Running string    // the version of this program
	Others  []Package // in which releases come to other servers, as far as that is known
	// Known are the digests of the release that was found to be installable. Nothing is
	// downloaded for them again.
	Known record.Digests
	Dir   string // for downloads
}

// own returns in which package the release comes to this machine.
func (i Inspection) own() Package { return Package{i.Form, cmp.Or(i.Arch, runtime.GOARCH)} }

// Inspected is what was found of a release that servers can install.
type Inspected struct {
	record.Digests
	Needs *record.Needs // nil: nobody has looked, since its digests were known
}

// Inspect checks that servers can install a release, and returns its digests and needs. It downloads the
// package for this machine. It returns a RefusedError if the present release cannot be installed:
//
// * it is not signed,
// * it lacks a package, or a file of its plan,
// * its version differs from its tag's,
// * this program cannot read its plan, which does not name the version that it requires.
//
// After any other error a later call may succeed.
func (s *Source) Inspect(ctx context.Context, r Release, i Inspection) (Inspected, error) {
	sums, err := s.trustedSums(ctx, r)
	if err != nil {
		return Inspected{}, err
	}
	if sums.digest == i.Known.Sums {
		return Inspected{Digests: i.Known}, nil
	}

	// The result is valid until the release or this program changes.
	key := fmt.Sprintln(r, sums.digest, i.own(), i.Running, i.Others)
	found, known := s.inspected[key]

	if !known {
		found, err = s.inspectPackage(ctx, r, sums, i)
		refused, isRefused := errors.AsType[RefusedError](err)
		if err != nil && !isRefused {
			return Inspected{}, err
		}

		if isRefused {
			found.refused = &RefusedError{Why: refused.Why, Sums: sums.digest}
		}
		s.inspected[key] = found
	}
	if found.refused != nil {
		return Inspected{}, *found.refused
	}

	// Files of other servers come and go.
	sizes, err := s.checkFiles(ctx, r, sums, found.manifest, i)
	if _, refused := errors.AsType[RefusedError](err); refused {
		return Inspected{}, RefusedError{Why: err.Error(), Sums: sums.digest}
	}
	if err != nil {
		return Inspected{}, err
	}

	needs, err := findNeeds(r, found, i, sizes)
	return Inspected{Digests: found.digests, Needs: needs}, err
}

// inspectedPackage holds the findings about the files of a release.
type inspectedPackage struct {
	digests  record.Digests
	manifest Manifest // empty if there is none in the package, or if it is for a later version of this program
	refused  *RefusedError
}

// inspectPackage inspects the package for this machine, and checks that there are packages for the other
// servers. It returns a RefusedError if these make the release unfit.
func (s *Source) inspectPackage(
	ctx context.Context,
	r Release,
	sums verifiedSums,
	i Inspection,
) (found inspectedPackage, err error) {
	own := i.own()
	for _, p := range append([]Package{own}, i.Others...) {
		if err := checkPackageThere(r, sums, p); err != nil {
			return found, err
		}
	}

	name, err := r.assetName(own.Form, own.Arch)
	if err != nil {
		return found, err
	}

	file, err := s.fetchAsset(ctx, r, sums, name, i.Dir)
	if err != nil {
		return found, err
	}
	data, err := readPackagedPlan(ctx, own.Form, file)
	if errors.Is(err, errNoUnpacker) || ctx.Err() != nil {
		return found, err
	}

	if err != nil && !isWhole(file, sums.Sums[name]) {
		return found, fmt.Errorf("%w; the file that was downloaded cannot be read as it is published", err)
	}
	if err != nil && osutil.Hint(err) != "" {
		return found, err
	}
	if err != nil {
		return found, RefusedError{Why: err.Error()}
	}

	found.digests.Sums = sums.digest
	if data != nil {
		if found.digests.Plan, err = PlanDigest(data); err != nil {
			return found, refuse("%s: %v", name, err)
		}
	}
	if err := s.comparePlanFile(ctx, r, sums, name, found.digests.Plan, i.Dir); err != nil {
		return found, err
	}

	if data == nil {
		return found, nil // its program has one built in
	}
	found.manifest, err = checkPlan(r, name, data, i.Running)
	return found, err
}

// isWhole reports whether the disk still returns the downloaded bytes.
func isWhole(file string, want [sha256.Size]byte) bool {
	sum, _, err := osutil.DigestFile(file)
	return err == nil && sum == hex.EncodeToString(want[:])
}

// checkPackageThere refuses a release without the package of this form and architecture, or without its sum.
func checkPackageThere(r Release, sums verifiedSums, p Package) error {
	name, err := r.assetName(p.Form, p.Arch)
	if err != nil {
		return err
	}

	if _, err := r.Find(name); err != nil {
		return RefusedError{Why: err.Error()}
	}
	if _, listed := sums.Sums[name]; !listed {
		return refuse(
			"%s does not list %s, so that nothing says what it must be; are they the sums of another release?",
			SumsFile,
			name,
		)
	}

	return nil
}

// comparePlanFile refuses a release whose file manifest.yaml differs from the manifest inside its package.
// Servers that install the package would not do the steps.
func (s *Source) comparePlanFile(ctx context.Context, r Release, sums verifiedSums, name, packaged, dir string) error {
	if _, err := r.Find(ManifestFile); err != nil {
		return nil
	}
	if _, listed := sums.Sums[ManifestFile]; !listed {
		return refuse("%s does not list %s", SumsFile, ManifestFile)
	}

	file, err := s.fetchAsset(ctx, r, sums, ManifestFile, dir)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	digest, err := PlanDigest(data)
	if err != nil {
		return refuse("%s: %v", ManifestFile, err)
	}
	if digest != packaged {
		return refuse("its %s brings another plan than its file %s: the digest is %s, not %s",
			name, ManifestFile, record.ShortDigest(packaged), record.ShortDigest(digest))
	}

	return checkPlanVersion(r, ManifestFile, data, false)
}

// checkPlan returns the plan that is in the package, or an empty one if that is for a later version
// of this program, which reads it once it is installed.
func checkPlan(r Release, name string, data []byte, running string) (Manifest, error) {
	file := name + "/" + ManifestFile
	if err := checkPlanVersion(r, file, data, true); err != nil {
		return Manifest{}, err
	}

	var loose struct{ Requires string }
	_ = yaml.Unmarshal(data, &loose) // PlanDigest has read it; another kind of value is refused below

	if loose.Requires != "" {
		later, err := requiresLater(r, loose.Requires, running)
		if err != nil {
			return Manifest{}, refuse("%s: %v", file, err)
		}
		if later {
			return Manifest{}, nil
		}
	}

	m, err := ReadManifest(file, data)
	if err != nil {
		return Manifest{}, refuse(
			"%v; this program is of %s: a plan that needs a later one says which (requires: VERSION)",
			err,
			running,
		)
	}

	return m, nil
}

// requiresLater reports whether the plan of the release needs a later version than the one that
// runs. The release itself must be as new.
func requiresLater(r Release, requires, running string) (bool, error) {
	v, err := ParseVersion(requires)
	if err != nil {
		return false, err
	}

	_, own, err := ParseTag(r.Tag)
	if err != nil {
		return false, err
	}
	if v.Compare(own) > 0 {
		return false, fmt.Errorf("it requires %s, and the release is %s itself", v, own)
	}

	return Newer(requires, running), nil
}

// checkPlanVersion returns an error if the plan's version differs from the tag's. With isNeeded the plan
// must have a version.
func checkPlanVersion(r Release, file string, data []byte, isNeeded bool) error {
	_, tagged, err := ParseTag(r.Tag)
	if err != nil {
		return err
	}
	version, err := VersionIn(data)

	switch {
	case err != nil:
		return refuse("%s: %v", file, err)
	case version == "" && isNeeded:
		return refuse(
			"%s does not say its version, so that servers which install it would never be of %s: it needs the line version: %s",
			file,
			tagged,
			tagged,
		)
	case version != "" && !Same(version, tagged.String()):
		return refuse("%s is of version %s, and the tag is %s: are they the files of another release?", file,
			version, r.Tag)
	}

	return nil
}

// arches returns the architectures of the servers, as far as they are known.
func (i Inspection) arches() []string {
	all := []string{i.own().Arch}
	for _, p := range i.Others {
		all = append(all, p.Arch)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkFiles returns an error if a file of the plan is missing. It returns the sizes of files by their
// File.String, as far as their servers tell them.
func (s *Source) checkFiles(
	ctx context.Context,
	r Release,
	sums verifiedSums,
	m Manifest,
	i Inspection,
) (sizes map[string]int64, err error) {
	sizes = map[string]int64{}
	for _, a := range r.Assets {
		sizes[a.URL] = a.Size // a plan may name them by their addresses, too
	}

	for _, arch := range i.arches() {
		own, err := m.ForArch(arch)
		if err != nil {
			return nil, RefusedError{Why: err.Error()}
		}

		for _, c := range own.Components {
			for _, f := range append(c.Artifact.Files(), c.Contents.Files()...) {
				if _, checked := sizes[f.String()]; checked || f.String() == "" {
					continue
				}
				sizes[f.String()], err = s.checkFileOf(ctx, r, sums, f)
				if err != nil {
					return nil, fmt.Errorf("component %q: %w", c.Name, err)
				}
			}
		}
	}

	return sizes, nil
}

// checkFileOf checks that a file of the plan is published, with the plan's sum if it is one of the release.
// It returns the size.
func (s *Source) checkFileOf(ctx context.Context, r Release, sums verifiedSums, f File) (size int64, err error) {
	if f.Name == "" {
		return s.checkFileThere(ctx, f.URL)
	}

	asset, err := r.Find(f.Name)
	if err != nil {
		return 0, RefusedError{Why: err.Error()}
	}
	if sum, listed := sums.Sums[f.Name]; !listed || hex.EncodeToString(sum[:]) != f.SHA256 {
		return 0, refuse("%s does not list %q with the sum that the plan has", SumsFile, f.Name)
	}

	return asset.Size, nil
}

// neededFiles returns the component's files whose sizes are known.
func neededFiles(c Component, sizes map[string]int64) (needed []record.NeededFile) {
	for _, f := range c.Artifact.Files() {
		size := sizes[f.String()]
		if size <= 0 {
			continue
		}

		into := record.RoomPackages
		if f.To != "" {
			into = filepath.Dir(f.To)
		}
		needed = append(needed, record.NeededFile{
			Component: c.Name,
			Sum:       record.ShortDigest(f.SHA256),
			Size:      size,
			Into:      into,
		})
	}

	return needed
}

// findNeeds returns how many bytes each server must download. It leaves out files that one server downloads
// for all, since nobody knows which, and images, whose sizes are unknown.
func findNeeds(r Release, found inspectedPackage, i Inspection, sizes map[string]int64) (*record.Needs, error) {
	_, version, err := ParseTag(r.Tag)
	if err != nil {
		return nil, err
	}

	packages := map[string]int64{}
	for _, p := range append([]Package{i.own()}, i.Others...) {
		name, err := r.assetName(p.Form, p.Arch)
		if err != nil {
			return nil, err
		}

		if asset, err := r.Find(name); err == nil && asset.Size > 0 {
			packages[p.String()] = asset.Size
		}
	}

	files := map[string][]record.NeededFile{}
	for _, arch := range i.arches() {
		own, err := found.manifest.ForArch(arch)
		if err != nil {
			return nil, err
		}

		for _, c := range own.Components {
			if needed := neededFiles(c, sizes); len(needed) > 0 {
				files[arch] = append(files[arch], needed...)
			}
		}
	}

	n := record.Needs{Version: version.String(), Sums: found.digests.Sums}
	if len(packages) > 0 {
		n.Packages = packages
	}
	if len(files) > 0 {
		n.Files = files
	}
	n = n.Bounded()
	return &n, nil
}

// checkFileThere asks for the head of the file, and returns its length, or 0 if that is not known. A server
// that does not support such requests may still have the file.
func (s *Source) checkFileThere(ctx context.Context, url string) (size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return 0, refuse("cannot ask for %s: %v", url, err)
	}

	resp, err := s.http.Do(req)
	if err != nil {
		if err != nil {
			return 0, fmt.Errorf("cannot ask for %s: %w", url, err)
		}

		return 0, nil
	}
	defer resp.Body.Close()

	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		return 0, refuse("%s is not there: the server answers %s", url, resp.Status)
	case code >= 500 && code != http.StatusNotImplemented:
		return 0, fmt.Errorf("cannot ask for %s: the server answers %s", url, resp.Status)
	case code != http.StatusOK:
		return 0, nil // it may be the length of what is said about that
	}

	return max(0, resp.ContentLength), nil
}

// Candidates returns the complete releases that the environment takes, the best first, and
// ErrIncomplete if one that is not complete would have been the first.
func (s *Source) Candidates(all []Release) (choices []Choice, err error) {
	whole, err := filterComplete(s.config.Env, s.config.TagPrefix, all)
	for {
		best, ok := Choose(s.config.Env, s.config.TagPrefix, whole)
		if !ok {
			return choices, err
		}

		choices = append(choices, best)
		whole = slices.DeleteFunc(whole, func(r Release) bool {
			_, v, err := ParseTag(r.Tag)
			return err == nil && v.Compare(best.Version) == 0
		})
	}
}
