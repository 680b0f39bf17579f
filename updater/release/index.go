package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// IndexFile is the name of the index in a directory of releases. docs/reference/updater.md describes its
// format.
const IndexFile = "index.json"

// indexFormat is the format that this version writes, and the newest format that it can read.
const indexFormat = 1

// index lists the releases in a directory. The files of each release are in a subdirectory that has the
// release's tag as its name.
type index struct {
	Format   int            `json:"format"`
	Releases []indexRelease `json:"releases"`
}

// indexRelease is one release in an index.
type indexRelease struct {
	Tag        string      `json:"tag"`
	PreRelease bool        `json:"pre-release,omitempty"`
	Files      []indexFile `json:"files"`
}

// indexFile is one file of a release in an index.
type indexFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}

// parseIndex parses an index. Each error is a SourceError.
func parseIndex(data []byte) (x index, err error) {
	// The format is read first, since all other fields depend on it.
	var header struct {
		Format int `json:"format"`
	}

	err = json.Unmarshal(data, &header)
	switch {
	case err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		err = fmt.Errorf("got a web page instead of %s; does the server require a login?", IndexFile)
		return x, SourceError{Kind: NoReleases, Err: err}
	case err != nil:
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	case header.Format > indexFormat:
		err = fmt.Errorf("%s has format %d, which only a later version of neco can read", IndexFile, header.Format)
		return x, SourceError{Kind: LaterFormat, Err: err}
	case header.Format < 1:
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: its format is missing", IndexFile)}
	}

	if err := json.Unmarshal(data, &x); err != nil {
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	}
	if err := x.checkReleases(); err != nil {
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	}

	return x, nil
}

// checkReleases checks that tags, file names and sizes are valid, and that no tag occurs twice.
func (x index) checkReleases() error {
	seen := map[string]bool{}
	for _, r := range x.Releases {
		if !isPlainName(r.Tag) {
			return fmt.Errorf("%q is not a tag", r.Tag)
		}
		if seen[r.Tag] {
			return fmt.Errorf("the tag %q appears twice", r.Tag)
		}

		seen[r.Tag] = true
		for _, f := range r.Files {
			if !isPlainName(f.Name) {
				return fmt.Errorf("release %q: %q cannot be the name of a file", r.Tag, f.Name)
			}
			if f.Size < 0 {
				return fmt.Errorf("release %q: the size of %q is negative", r.Tag, f.Name)
			}
		}
	}

	return nil
}

// isPlainName reports whether the name can only refer to a visible file in the directory itself.
func isPlainName(name string) bool {
	isForbidden := func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, isForbidden)
}
