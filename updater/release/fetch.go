package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"bijou/state/durable"
	"bijou/updater/record"
)

// Lookup returns the release of that version, whether or not an environment would
// take it; drafts never, and only those with the prefix (empty: any).
func Lookup(version, prefix string, all []Release) (Release, error) {
	var best Choice
	for _, r := range all {
		p, v, err := ParseTag(r.Tag)
		if err != nil || r.Draft || prefix != "" && p != prefix || !Same(v.String(), version) {
			continue
		}
		if c := (Choice{Release: r, Version: v}); best.Release.Tag == "" || better(c, best) {
			best = c
		}
	}
	if best.Release.Tag == "" {
		return Release{}, fmt.Errorf("there is no release of version %s", version)
	}
	return best.Release, nil
}

// Wanted is one file of a release that somebody wants.
type Wanted struct {
	Version string
	Form    string // Deb or Tarball; "": the file Name
	Arch    string // in Go's words
	Name    string
	Dir     string // where to put it
	Sums    string // the digest that SHA256SUMS must have; "": any
}

// name is the wanted file's, in the release's own writing of its version.
func (w Wanted) name(r Release) (string, error) {
	if w.Form == "" {
		return w.Name, nil
	}
	_, v, err := ParseTag(r.Tag)
	return AssetName(w.Form, v, w.Arch), err
}

// Fetch brings a file of a release to the folder, and returns where it is: got
// whole, with the sum that SHA256SUMS says, which must be signed if a public key
// is configured.
func (s *Source) Fetch(ctx context.Context, w Wanted) (path string, err error) {
	all, err := s.Releases(ctx)
	if err != nil {
		return "", err
	}
	r, err := Lookup(w.Version, s.config.TagPrefix, all)
	if err != nil {
		return "", err
	}
	name, err := w.name(r)
	if err != nil {
		return "", err
	}
	if _, err := r.Find(name); err != nil {
		return "", err
	}
	sums, err := s.sums(ctx, r)
	if err != nil {
		return "", err
	}
	if record.Differ(w.Sums, sums.digest) {
		return "", fmt.Errorf("the files of release %q were replaced: the digest of its %s is %s now, not %s as when the update began",
			r.Tag, SumsFile, record.ShortDigest(sums.digest), record.ShortDigest(w.Sums))
	}
	return s.get(ctx, r, sums, name, w.Dir)
}

// get brings a file of the release to the folder.
func (s *Source) get(ctx context.Context, r Release, sums verified, name, dir string) (path string, err error) {
	asset, err := r.Find(name)
	if err != nil {
		return "", err
	}
	sum, ok := sums.Sums[name]
	if !ok {
		return "", fmt.Errorf("cannot trust %q: %s does not list it", name, SumsFile)
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	return path, Download{Client: s.http, URL: asset.URL, Header: s.header(), Path: path, Size: asset.Size, SHA256: sum}.Get(ctx)
}

// header is what a request for a file has.
func (s *Source) header() http.Header {
	h := http.Header{"Accept": {"application/octet-stream"}}
	if s.config.GitHubToken != "" {
		h.Set("Authorization", "Bearer "+s.config.GitHubToken)
	}
	return h
}

// verified are sums that can be trusted, and the digest of their file.
type verified struct {
	Sums
	digest string
}

// sums reads the sums of a release, as far as they can be trusted.
func (s *Source) sums(ctx context.Context, r Release) (v verified, err error) {
	data, err := s.small(ctx, r, SumsFile)
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
			if sig, err = s.small(ctx, r, SignatureFile); err != nil {
				return v, err
			}
		}
	}
	v.digest = digest(data)
	v.Sums, err = Trust(key, data, sig)
	return v, err
}

// maxSmall is how long the files may be that are about others, in bytes.
const maxSmall = 1 << 20

// small gets a short file into memory. A server that fails is asked again.
func (s *Source) small(ctx context.Context, r Release, name string) (data []byte, err error) {
	asset, err := r.Find(name)
	if err != nil {
		return nil, err
	}
	gap := firstGap
	for n := 1; ; n++ {
		data, err = s.smallOnce(ctx, asset)
		if _, final := errors.AsType[refused](err); err == nil || final || n == tries || ctx.Err() != nil {
			break
		}
		if err := pause(ctx, gap); err != nil {
			return nil, err
		}
		gap *= 2
	}
	if err != nil {
		return nil, fmt.Errorf("cannot download %s: %w", asset.URL, err)
	}
	return data, nil
}

func (s *Source) smallOnce(ctx context.Context, a Asset) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	d := Download{Client: s.http, URL: a.URL, Header: s.header(), Size: a.Size}
	resp, err := d.ask(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := d.begins(resp, 0); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxSmall+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSmall, a.Size > 0 && int64(len(data)) != a.Size:
		return nil, fmt.Errorf("it has %d bytes, not %d as published", len(data), a.Size)
	}
	return data, nil
}
