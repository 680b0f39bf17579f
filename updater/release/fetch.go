package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
	"bijou/updater/record"
)

// Wanted describes a package of a release to fetch.
type Wanted struct {
	Version string
	Form    string // Deb or Tarball
	Arch    string // as in GOARCH
	Dir     string // the destination directory
	Sums    string // the digest that SHA256SUMS must have, or "" for any
}

// assetName returns the name of the release's package, with the version as in the release's tag. It returns
// an error if the tag has no version.
func (r Release) assetName(form, arch string) (string, error) {
	_, v, err := ParseTag(r.Tag)
	return AssetName(form, v, arch), err
}

// FetchPackage downloads a package of a release to the directory w.Dir, and returns its path. It verifies the
// package's sum with SHA256SUMS, which must be signed if a public key is configured. It returns an error if
// SHA256SUMS does not have the digest w.Sums, unless w.Sums is "".
func (s *Source) FetchPackage(ctx context.Context, w Wanted) (path string, err error) {
	r, sums, err := s.lookupRelease(ctx, w.Version)
	if err != nil {
		return "", err
	}

	name, err := r.assetName(w.Form, w.Arch)
	if err != nil {
		return "", err
	}
	if record.Differ(w.Sums, sums.digest) {
		return "", fmt.Errorf("the files of release %q were replaced: the digest of its %s is %s now, not %s as when the update began",
			r.Tag, SumsFile, record.ShortDigest(sums.digest), record.ShortDigest(w.Sums))
	}

	return s.fetchAsset(ctx, r, sums, name, w.Dir)
}

// fetchAsset downloads a file of a release into the directory, verifies its sum, and returns its path.
func (s *Source) fetchAsset(
	ctx context.Context,
	r Release,
	sums verifiedSums,
	name, dir string,
) (path string, err error) {
	asset, err := r.Find(name)
	if err != nil {
		return "", err
	}

	sum, ok := sums.Sums[name]
	if !ok {
		return "", fmt.Errorf("cannot trust %q: %s does not list it", name, SumsFile)
	}
	if err := osutil.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create the directory of downloads: %w", err)
	}

	path = filepath.Join(dir, name)
	return path, s.Publisher.Fetch(ctx, asset, path, sum)
}

// verifiedSums are the sums of a release, and the digest of the file with the sums. If a key is configured, the
// file's signature was verified.
type verifiedSums struct {
	Sums
	digest string
}

// readTrustedSums reads the release's sums. It verifies their signature if a key is configured. It returns a
// RefusedError if the signature is missing or wrong, or if the sums cannot be parsed.
func (s *Source) readTrustedSums(ctx context.Context, r Release) (v verifiedSums, err error) {
	data, err := s.readFile(ctx, r, SumsFile)
	if err != nil {
		return v, err
	}

	var key *PublicKey
	var sig []byte

	if s.config.MinisignKey != "" {
		k, err := ParsePublicKey(s.config.MinisignKey)
		if err != nil {
			return v, err
		}

		key = &k
		// Trust refuses the release if there is no signature.
		_, err = r.Find(SignatureFile)
		hasSignature := err == nil
		if hasSignature {
			if sig, err = s.readFile(ctx, r, SignatureFile); err != nil {
				return v, err
			}
		}
	}

	v.digest = osutil.Digest(data)
	v.Sums, err = Trust(key, data, sig)
	if err != nil {
		return v, RefusedError{Why: err.Error(), Sums: v.digest}
	}

	return v, nil
}

// FetchFile downloads a file that is part of a release to the path, and verifies its sum f.SHA256. f.Release is the
// version of that release. If the source does not have the release yet, FetchFile waits as [Source.Await] does. If
// the file is already at the path, it sends no request.
func (s *Source) FetchFile(ctx context.Context, f File, path string) error {
	raw, err := hex.DecodeString(f.SHA256)
	if err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("cannot download %s: %q is not a SHA-256 sum", f, f.SHA256)
	}

	sum := [sha256.Size]byte(raw)
	if (Download{Path: path, SHA256: sum}).isThere() {
		// The process that renamed the file may have been killed before it synced the directory.
		return osutil.SyncDir(filepath.Dir(path))
	}

	r, err := s.Await(ctx, f.Release)
	if err != nil {
		return err
	}
	asset, err := r.Find(f.Name)
	if err != nil {
		return err
	}

	return s.Publisher.Fetch(ctx, asset, path, sum)
}

// readFile returns the contents of a small file of the release.
func (s *Source) readFile(ctx context.Context, r Release, name string) ([]byte, error) {
	asset, err := r.Find(name)
	if err != nil {
		return nil, err
	}

	return s.Read(ctx, asset)
}

// PlanDigest returns the digest of a manifest's canonical form: JSON with sorted keys, without the version.
// The form includes fields that this program does not know.
func PlanDigest(manifest []byte) (string, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(manifest, &fields); err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	delete(fields, "version")
	canonical, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	return osutil.Digest(canonical), nil
}
