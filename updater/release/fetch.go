package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/backoff"
	"bijou/state/osutil"
	"bijou/updater/record"
)

// Wanted is a package of a release to fetch.
type Wanted struct {
	Version string
	Form    string // Deb or Tarball
	Arch    string // in Go's words
	Dir     string // where to put it
	Sums    string // the digest that SHA256SUMS must have; "": any
}

// assetName uses the version as the release's own tag writes it.
func (r Release) assetName(form, arch string) (string, error) {
	_, v, err := ParseTag(r.Tag)
	return AssetName(form, v, arch), err
}

// Fetch downloads a package of a release to the folder, and returns its path. The file has
// the sum that SHA256SUMS says, which must be signed if a public key is configured.
func (s *Source) Fetch(ctx context.Context, w Wanted) (path string, err error) {
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
		return "", fmt.Errorf("cannot make the folder of downloads: %w", err)
	}

	path = filepath.Join(dir, name)
	return path, Download{
		Client: s.http,
		URL:    asset.URL,
		Header: s.requestHeader(),
		Path:   path,
		Size:   asset.Size,
		SHA256: sum,
	}.Get(ctx)
}

func (s *Source) requestHeader() http.Header {
	h := http.Header{"Accept": {"application/octet-stream"}}
	if s.config.GitHubToken != "" {
		h.Set("Authorization", "Bearer "+s.config.GitHubToken)
	}
	return h
}

// verifiedSums are sums whose signature was checked if a key is configured, and the
// digest of their file.
type verifiedSums struct {
	Sums
	digest string
}

func (s *Source) trustedSums(ctx context.Context, r Release) (v verifiedSums, err error) {
	data, err := s.fetchSmall(ctx, r, SumsFile)
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
		if _, missing := r.Find(SignatureFile); missing == nil {
			if sig, err = s.fetchSmall(ctx, r, SignatureFile); err != nil {
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

// maxSmallSize bounds the files that are read into memory, in bytes.
const maxSmallSize = 1 << 20

func (s *Source) fetchSmall(ctx context.Context, r Release, name string) (data []byte, err error) {
	asset, err := r.Find(name)
	if err != nil {
		return nil, err
	}

	gap := minRetryDelay
	for n := 1; ; n++ {
		data, err = s.fetchSmallOnce(ctx, asset)
		if _, final := errors.AsType[permanentError](err); err == nil || final || n == maxTries ||
			ctx.Err() != nil {
			break
		}
		if err := backoff.Sleep(ctx, gap); err != nil {
			return nil, err
		}
		gap *= 2
	}

	if err != nil {
		return data, fmt.Errorf("cannot download %s: %w", asset.URL, err)
	}

	return data, nil
}

func (s *Source) fetchSmallOnce(ctx context.Context, a Asset) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	d := Download{Client: s.http, URL: a.URL, Header: s.requestHeader(), Size: a.Size}
	resp, err := d.sendRequest(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	if _, err := d.checkResponse(resp, 0); err != nil {
		return nil, err
	}

	data, err := io.ReadAll(io.LimitReader(resp.Body, maxSmallSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSmallSize, a.Size > 0 && int64(len(data)) != a.Size:
		return nil, fmt.Errorf("it has %d bytes, not %d as published", len(data), a.Size)
	}

	return data, nil
}

// PlanDigest returns the digest of a manifest's canonical form: JSON with sorted keys, without the
// version. This program need not know the manifest's fields, which may be newer.
func PlanDigest(manifest []byte) (string, error) {
	var plan map[string]any
	err := yaml.Unmarshal(manifest, &plan)
	delete(plan, "version")
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	manifest, err = json.Marshal(plan)
	if err != nil {
		return "", fmt.Errorf("cannot read the manifest: %w", err)
	}

	return osutil.Digest(manifest), nil
}
