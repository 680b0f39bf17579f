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

// RefusedError is the error of a release that cannot be installed as it is published. A retry does not help
// until its publisher changes the release.
type RefusedError struct {
	Why  string
	Sums string // the digest of its SHA256SUMS, or "" if it is unknown
}

// Error returns Why.
func (e RefusedError) Error() string { return e.Why }

// refuse returns a RefusedError with the formatted reason.
func refuse(format string, args ...any) error { return RefusedError{Why: fmt.Sprintf(format, args...)} }

// Package is the form and architecture in which a server gets releases.
type Package struct {
	Form string // Deb or Tarball
	Arch string // as in GOARCH
}

// String returns FORM/ARCH, as it is stored in presences.
func (p Package) String() string { return p.Form + "/" + p.Arch }

// ParsePackage parses FORM/ARCH. ok is false if s does not have that form.
func ParsePackage(s string) (p Package, ok bool) {
	p.Form, p.Arch, ok = strings.Cut(s, "/")
	return p, ok && (p.Form == Deb || p.Form == Tarball) && p.Arch != ""
}

// Inspection describes the servers for which a release is inspected.
type Inspection struct {
	Form    string    // the form of the package from which this program was installed
	Arch    string    // the architecture to inspect, or "" for this host's
	Running string    // the version of this program
	Others  []Package // the packages that other servers get, as far as they are known
	// Known are the digests of a release that was already found to be installable. If the release still has
	// them, nothing is downloaded.
	Known record.Digests
	Dir   string // the directory for downloads
}

// own returns the package that this host gets.
func (i Inspection) own() Package { return Package{i.Form, cmp.Or(i.Arch, runtime.GOARCH)} }

// Inspected is the result of inspecting a release that servers can install.
type Inspected struct {
	record.Digests
	Needs *record.Needs // nil if the digests were already known
}

// Inspect checks that servers can install a release, and returns its digests and needs. If SHA256SUMS has the
// digest in i.Known, Inspect returns i.Known without needs, and checks nothing else. Otherwise it downloads the
// package for this host, unless it has inspected the package before. It returns a RefusedError if the release
// cannot be installed as it is published:
//
//   - Its SHA256SUMS is malformed, does not list a package or its file manifest.yaml, or is not signed with the
//     configured public key.
//   - It lacks a package, or a file of its plan.
//   - Its SHA256SUMS has no sum, or a different sum, for a file of the release that its plan refers to by name.
//   - Its plan has no version, or a different version than its tag.
//   - Its file manifest.yaml differs from the plan in its package.
//   - This program cannot read its plan, and the plan does not require a later version of this program.
//   - Its plan requires a later version of this program than the release itself.
//
// After any other error, a later call can succeed.
func (s *Source) Inspect(ctx context.Context, r Release, i Inspection) (Inspected, error) {
	sums, err := s.readTrustedSums(ctx, r)
	if err != nil {
		return Inspected{}, err
	}
	if sums.digest == i.Known.Sums {
		return Inspected{Digests: i.Known}, nil
	}

	found, err := s.inspectPackageOnce(ctx, r, sums, i)
	if err != nil {
		return Inspected{}, err
	}

	// This check is repeated each time, since files on other hosts can disappear.
	sizes, err := s.checkFiles(ctx, r, sums, found.manifest, i)
	if _, isRefused := errors.AsType[RefusedError](err); isRefused {
		return Inspected{}, RefusedError{Why: err.Error(), Sums: sums.digest}
	}
	if err != nil {
		return Inspected{}, err
	}

	needs, err := findNeeds(r, found, i, sizes)
	if err != nil {
		return Inspected{}, err
	}

	return Inspected{Digests: found.digests, Needs: needs}, nil
}

// inspectedPackage holds the findings about the files of a release.
type inspectedPackage struct {
	digests  record.Digests
	manifest Manifest // empty if the package contains none, or one for a later version of this program
	refused  *RefusedError
}

// inspectPackageOnce calls inspectPackage, or returns its cached result. A result is valid until the release, this
// program or the other servers' packages change, even if it is a RefusedError. Other errors are not cached.
func (s *Source) inspectPackageOnce(
	ctx context.Context,
	r Release,
	sums verifiedSums,
	i Inspection,
) (found inspectedPackage, err error) {
	key := fmt.Sprintln(r, sums.digest, i.own(), i.Running, i.Others)
	found, isCached := s.inspected[key]
	if !isCached {
		found, err = s.inspectPackage(ctx, r, sums, i)
		if refused, isRefused := errors.AsType[RefusedError](err); isRefused {
			found.refused = &RefusedError{Why: refused.Why, Sums: sums.digest}
		} else if err != nil {
			return inspectedPackage{}, err
		}
		s.inspected[key] = found
	}

	if found.refused != nil {
		return inspectedPackage{}, *found.refused
	}
	return found, nil
}

// inspectPackage inspects the package for this host, and checks that there are packages for the other
// servers. It returns a RefusedError if a package or its sum is missing, or if the plan cannot be used.
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

	// Download the package for this host, and read the plan in it.
	name, err := r.assetName(own.Form, own.Arch)
	if err != nil {
		return found, err
	}
	file, err := s.fetchAsset(ctx, r, sums, name, i.Dir)
	if err != nil {
		return found, err
	}
	data, err := readPackagedPlan(ctx, own.Form, file)
	if ctx.Err() != nil {
		// An error can come from the end of ctx, and must not refuse the release.
		return found, ctx.Err()
	}
	if err != nil {
		return found, explainPlanError(err, file, sums.Sums[name])
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
		// The program in the package has a built-in manifest.
		return found, nil
	}
	found.manifest, err = checkPlan(r, name, data, i.Running)
	return found, err
}

// isWhole reports whether the file on the disk still has the sum with which it was downloaded.
func isWhole(file string, want [sha256.Size]byte) bool {
	sum, _, err := osutil.DigestFile(file)
	return err == nil && sum == hex.EncodeToString(want[:])
}

// checkPackageThere returns a RefusedError if the release does not have the package, or SHA256SUMS does not
// list it.
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
			"%s does not list %s, so the file cannot be verified; is it from a different release?",
			SumsFile,
			name,
		)
	}

	return nil
}

// comparePlanFile returns a RefusedError if the release's file manifest.yaml differs from the manifest inside
// the package called name, which has the digest packaged. Servers that install the package would run other steps
// than those in the file. It also refuses a file that SHA256SUMS does not list, or whose version differs from the
// tag. It returns nil if the release has no such file.
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
		return refuse("the plan in its %s differs from its file %s: the digest is %s, not %s",
			name, ManifestFile, record.ShortDigest(packaged), record.ShortDigest(digest))
	}

	return checkPlanVersion(r, ManifestFile, data, versionOptional)
}

// checkPlan checks and returns the plan data, which comes from the package called name. If the plan requires
// a later version of this program than the running one, checkPlan returns an empty plan. That later version
// will read the plan once it is installed.
func checkPlan(r Release, name string, data []byte, running string) (Manifest, error) {
	file := name + "/" + ManifestFile
	if err := checkPlanVersion(r, file, data, versionNeeded); err != nil {
		return Manifest{}, err
	}

	// Only requires is read at first, since a plan for a later version can have unknown fields.
	var header struct{ Requires string }
	// An error is ignored, since PlanDigest has parsed the YAML. Only the type of a value can be wrong, and
	// ReadManifest reports that below.
	_ = yaml.Unmarshal(data, &header)

	if header.Requires != "" {
		isForLater, err := requiresLater(r, header.Requires, running)
		if err != nil {
			return Manifest{}, refuse("%s: %v", file, err)
		}
		if isForLater {
			return Manifest{}, nil
		}
	}

	m, err := ReadManifest(file, data)
	if err != nil {
		return Manifest{}, refuse(
			"%v; this program has version %s; a plan that needs a later version must name it (requires: VERSION)",
			err,
			running,
		)
	}

	return m, nil
}

// requiresLater reports whether the plan requires a later version of this program than the running one. It
// returns an error if the plan requires a later version than the release itself.
func requiresLater(r Release, requires, running string) (bool, error) {
	v, err := ParseVersion(requires)
	if err != nil {
		return false, err
	}

	_, released, err := ParseTag(r.Tag)
	if err != nil {
		return false, err
	}
	if v.Compare(released) > 0 {
		return false, fmt.Errorf("the plan requires %s, but the release itself has version %s", v, released)
	}

	return Newer(requires, running), nil
}

// versionRule says whether a plan must have a version.
type versionRule bool

const (
	versionOptional versionRule = false
	versionNeeded   versionRule = true
)

// checkPlanVersion returns an error if the plan's version differs from the version in the tag, or if the plan
// has no version although the rule is versionNeeded.
func checkPlanVersion(r Release, file string, data []byte, rule versionRule) error {
	_, tagged, err := ParseTag(r.Tag)
	if err != nil {
		return err
	}
	version, err := VersionIn(data)

	switch {
	case err != nil:
		return refuse("%s: %v", file, err)
	case version == "" && rule == versionNeeded:
		return refuse(
			"%s has no version, so servers that install it would never count as running %s: add the line version: %s",
			file,
			tagged,
			tagged,
		)
	case version != "" && !Same(version, tagged.String()):
		return refuse("%s has version %s, but the tag is %s: are these the files of a different release?", file,
			version, r.Tag)
	}

	return nil
}

// explainPlanError returns a RefusedError if the plan in the file cannot be read because of the release.
// Otherwise the cause is on this host, and explainPlanError returns an error that wraps err. This is the case
// if the program that unpacks is missing, if the file no longer has its sum, or if err is a disk error.
func explainPlanError(err error, file string, sum [sha256.Size]byte) error {
	switch {
	case errors.Is(err, errNoUnpacker):
		return err
	case !isWhole(file, sum):
		return fmt.Errorf("%w; the local copy no longer matches the published checksum", err)
	case osutil.Hint(err) != "":
		// Only disk errors have a hint.
		return err
	}

	return RefusedError{Why: err.Error()}
}

// arches returns the known architectures of the servers.
func (i Inspection) arches() []string {
	all := []string{i.own().Arch}
	for _, p := range i.Others {
		all = append(all, p.Arch)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkFiles returns an error if a file of the plan is not available. It checks the files for all known
// architectures of the servers. It returns the sizes of the plan's files by their File.String, and of the
// release's assets by their URL. An unknown size is 0.
func (s *Source) checkFiles(
	ctx context.Context,
	r Release,
	sums verifiedSums,
	m Manifest,
	i Inspection,
) (sizes map[string]int64, err error) {
	sizes = map[string]int64{}
	for _, a := range r.Assets {
		// A plan can also name the release's own files by URL. They are published, so they need no request.
		sizes[a.URL] = a.Size
	}

	for _, arch := range i.arches() {
		plan, err := m.ForArch(arch)
		if err != nil {
			return nil, RefusedError{Why: err.Error()}
		}

		for _, c := range plan.Components {
			for _, f := range append(c.Artifact.Files(), c.Contents.Files()...) {
				_, isChecked := sizes[f.String()]
				if isChecked || f.String() == "" {
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

// checkFileOf checks that a file of the plan is available. SHA256SUMS must list a file of the release with the
// plan's sum. checkFileOf returns the file's size, or 0 if the size is unknown.
func (s *Source) checkFileOf(ctx context.Context, r Release, sums verifiedSums, f File) (size int64, err error) {
	if f.Name == "" {
		return s.checkFileThere(ctx, f.URL)
	}

	asset, err := r.Find(f.Name)
	if err != nil {
		return 0, RefusedError{Why: err.Error()}
	}
	sum, isListed := sums.Sums[f.Name]
	if !isListed || hex.EncodeToString(sum[:]) != f.SHA256 {
		return 0, refuse("%s does not list %q with the sum that the plan has", SumsFile, f.Name)
	}

	return asset.Size, nil
}

// neededFiles returns the files of the component's artifact whose sizes are known.
func neededFiles(c Component, sizes map[string]int64) (needed []record.NeededFile) {
	for _, f := range c.Artifact.Files() {
		size := sizes[f.String()]
		if size <= 0 {
			continue
		}

		// An archive is unpacked next to To. A package has no To, and dpkg installs its files.
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

// findNeeds returns the known sizes of the packages and files that servers must download. It leaves out files
// that one server downloads on behalf of all, since that server is not known in advance, and images, whose sizes
// are unknown.
func findNeeds(r Release, found inspectedPackage, i Inspection, sizes map[string]int64) (*record.Needs, error) {
	_, version, err := ParseTag(r.Tag)
	if err != nil {
		return nil, err
	}
	packages, err := packageSizes(r, i)
	if err != nil {
		return nil, err
	}

	files := map[string][]record.NeededFile{}
	for _, arch := range i.arches() {
		plan, err := found.manifest.ForArch(arch)
		if err != nil {
			return nil, err
		}

		for _, c := range plan.Components {
			if needed := neededFiles(c, sizes); len(needed) > 0 {
				files[arch] = append(files[arch], needed...)
			}
		}
	}

	// Empty maps are left out, as in a record that was read from the store.
	n := record.Needs{Version: version.String(), Sums: found.digests.Sums}
	if len(packages) > 0 {
		n.Packages = packages
	}
	if len(files) > 0 {
		n.Files = files
	}
	// If the sizes do not all fit into a record, the record has none.
	n = n.Bounded()
	return &n, nil
}

// packageSizes returns the known sizes of the packages that servers get, by their Package.String.
func packageSizes(r Release, i Inspection) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, p := range append([]Package{i.own()}, i.Others...) {
		name, err := r.assetName(p.Form, p.Arch)
		if err != nil {
			return nil, err
		}

		asset, err := r.Find(name)
		if err != nil {
			return nil, err
		}
		if asset.Size > 0 {
			sizes[p.String()] = asset.Size
		}
	}

	return sizes, nil
}

// checkFileThere sends a HEAD request for the file, and returns the file's size. It returns 0 if the size is
// unknown, or if the web server refuses the request, since it may still have the file. It returns a RefusedError
// if the URL is invalid or the file does not exist, and another error if the server fails or cannot be reached.
func (s *Source) checkFileThere(ctx context.Context, url string) (size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return 0, refuse("cannot request %s: %v", url, err)
	}

	resp, err := s.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot request %s: %w", url, err)
	}
	defer resp.Body.Close()

	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		return 0, refuse("%s does not exist: the server answers %s", url, resp.Status)
	case code >= 500 && code != http.StatusNotImplemented:
		return 0, fmt.Errorf("cannot request %s: the server answers %s", url, resp.Status)
	case code != http.StatusOK:
		// The length in this answer may be the length of an error page.
		return 0, nil
	}

	return max(0, resp.ContentLength), nil
}

// Candidates returns the complete releases that the environment accepts, the best first, and only the best
// one of each version. It also returns ErrIncomplete if the best release that the environment accepts is not
// complete.
func (s *Source) Candidates(all []Release) (choices []Choice, err error) {
	remaining, err := filterComplete(s.config.Env, s.config.TagPrefix, all)
	for {
		best, ok := Choose(s.config.Env, s.config.TagPrefix, remaining)
		if !ok {
			return choices, err
		}

		choices = append(choices, best)
		remaining = slices.DeleteFunc(remaining, func(r Release) bool {
			_, v, err := ParseTag(r.Tag)
			return err == nil && v.Compare(best.Version) == 0
		})
	}
}
