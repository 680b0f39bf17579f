package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// IndexFile is the name of the index of a folder with releases. docs/reference/updater.md has its
// format.
const IndexFile = "index.json"

// indexFormat is the format of the index that this version writes, and the greatest that it reads.
const indexFormat = 1

// index says which releases lie in a folder. The files of each lie in a folder of its own, which is
// called like its tag.
type index struct {
	Format   int            `json:"format"`
	Releases []indexRelease `json:"releases"`
}

type indexRelease struct {
	Tag        string      `json:"tag"`
	PreRelease bool        `json:"pre-release,omitempty"`
	Files      []indexFile `json:"files"`
}

type indexFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
}

// parseIndex reads an index. Its errors are a SourceError.
func parseIndex(data []byte) (x index, err error) {
	var loose struct {
		Format int `json:"format"`
	}

	err = json.Unmarshal(data, &loose)
	switch {
	case err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")):
		err = fmt.Errorf("a web page stands in the place of %s; does the server want a login?", IndexFile)
		return x, SourceError{Kind: NoReleases, Err: err}
	case err != nil:
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	case loose.Format > indexFormat:
		err = fmt.Errorf("%s has format %d, which only a later version of neco reads", IndexFile, loose.Format)
		return x, SourceError{Kind: LaterFormat, Err: err}
	case loose.Format < 1:
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: it does not say its format", IndexFile)}
	}

	if err := json.Unmarshal(data, &x); err != nil {
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	}
	if err := x.check(); err != nil {
		return x, SourceError{Kind: NoReleases, Err: fmt.Errorf("cannot read %s: %w", IndexFile, err)}
	}

	return x, nil
}

// check checks that tags and names of files are valid, and that no tag is there twice.
func (x index) check() error {
	seen := map[string]bool{}
	for _, r := range x.Releases {
		if !isPlainName(r.Tag) {
			return fmt.Errorf("%q is not a tag", r.Tag)
		}
		if seen[r.Tag] {
			return fmt.Errorf("the tag %q stands there twice", r.Tag)
		}

		seen[r.Tag] = true
		for _, f := range r.Files {
			if !isPlainName(f.Name) {
				return fmt.Errorf("release %q: %q is not the name of a file", r.Tag, f.Name)
			}
			if f.Size < 0 {
				return fmt.Errorf("release %q: the size of %q is negative", r.Tag, f.Name)
			}
		}
	}

	return nil
}

// isPlainName reports whether the name leads nowhere else than to a file of a folder.
func isPlainName(name string) bool {
	isOdd := func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, isOdd)
}
