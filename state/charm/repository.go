package charm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Repository is a directory of charms, with subdirectories SERIES/CHARM or CHARM. A charm's name comes from
// its metadata, not from its directory.
type Repository struct {
	Dir string
}

// Found is a charm that was found in a repository.
type Found struct {
	*Charm
	Path    string // path of the charm's directory
	Archive string // name of the archive that Path was unpacked from; empty without an archive
	Series  string // name of the directory above Path; empty if Path is directly in the repository
}

// ErrNotInRepository is returned if a repository does not have the charm.
var ErrNotInRepository = errors.New("no such charm in the repository")

// Find returns the charm that ref names. If several charms match, it returns the charm with the greatest
// revision. Among charms with that revision, it prefers a charm directly in the repository to a charm in a
// series' directory, then the first series' directory, and then the first charm by path. If no charm matches, it
// returns ErrNotInRepository, with the errors of all charms in the repository that could not be read.
func (r Repository) Find(ref Ref) (Found, error) {
	found, broken, err := r.findAll(ref)
	if err != nil {
		return Found{}, fmt.Errorf("cannot search repository %q: %w", r.Dir, err)
	}
	if len(found) == 0 {
		err := fmt.Errorf("charm %q in %q: %w", ref, r.Dir, ErrNotInRepository)
		return Found{}, errors.Join(append([]error{err}, broken...)...)
	}

	return slices.MinFunc(found, func(a, b Found) int {
		return cmp.Or(
			cmp.Compare(b.Revision, a.Revision),
			cmp.Compare(filepath.Dir(a.Path), filepath.Dir(b.Path)),
			cmp.Compare(a.Path, b.Path),
		)
	}), nil
}

// findAll returns all charms in the repository that ref can mean, and the errors of charms that cannot be read.
func (r Repository) findAll(ref Ref) (found []Found, broken []error, err error) {
	// Glob ignores errors, so check that the repository can be read.
	if _, err := os.ReadDir(r.Dir); err != nil {
		return nil, nil, err
	}

	// A charm is in NAME or in SERIES/NAME.
	for _, pattern := range []string{"*", "*/*"} {
		dirs, err := fs.Glob(os.DirFS(r.Dir), pattern)
		if err != nil {
			return nil, nil, err
		}

		for _, dir := range dirs {
			path := filepath.Join(r.Dir, dir)
			if !IsCharm(path) {
				continue
			}

			f, err := r.readFound(path, dir)
			switch {
			case err != nil:
				broken = append(broken, err)
			case f.matchesRef(ref):
				found = append(found, f)
			}
		}
	}

	return found, broken, nil
}

// readFound reads the charm in the directory dir. inRepository is the path of dir relative to the repository. If it
// has the form SERIES/NAME, the charm is for that series.
func (r Repository) readFound(dir, inRepository string) (Found, error) {
	c, err := ReadDir(dir)
	if err != nil {
		return Found{}, err
	}

	f := Found{Charm: c, Path: dir}
	if series := filepath.Dir(inRepository); series != "." && CheckSeries(series) == nil {
		f.Series = series
	}
	return f, nil
}

// matchesRef reports whether ref can mean the charm. A charm directly in the repository matches each series that
// it supports.
func (f Found) matchesRef(ref Ref) bool {
	if f.Meta.Name != ref.Name {
		return false
	}
	if ref.Revision >= 0 && f.Revision != ref.Revision {
		return false
	}
	if ref.Series == "" || f.Series == ref.Series {
		return true
	}

	return f.Series == "" && f.Meta.Supports(ref.Series)
}

// IsCharm reports whether dir has a file metadata.yaml or charmcraft.yaml.
func IsCharm(dir string) bool {
	for _, name := range []string{"metadata.yaml", "charmcraft.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// URL names one revision of a charm, such as "local:precise/mysql-7".
type URL struct {
	Series   string
	Name     string
	Revision int
}

// String returns the URL in the form that ParseURL reads.
func (u URL) String() string {
	return fmt.Sprintf("local:%s/%s-%d", u.Series, u.Name, u.Revision)
}

// MarshalText makes a URL one string in JSON and YAML.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText parses a URL that MarshalText wrote.
func (u *URL) UnmarshalText(text []byte) (err error) {
	*u, err = ParseURL(string(text))
	return err
}

// ParseURL parses a charm URL of the form local:SERIES/NAME-REVISION. It returns an error if a part is missing or
// invalid.
func ParseURL(s string) (URL, error) {
	ref, err := ParseRef(s)
	if err != nil {
		return URL{}, err
	}
	if !strings.HasPrefix(s, "local:") || ref.Series == "" || ref.Revision < 0 {
		return URL{}, fmt.Errorf("invalid charm URL %q: want local:SERIES/NAME-REVISION", s)
	}

	return URL(ref), nil
}

// ShortURL returns a charm's URL without its series, as newer versions of Juju write it, such as
// local:mysql-3. It returns any other text unchanged.
func ShortURL(text string) string {
	url, err := ParseURL(text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("local:%s-%d", url.Name, url.Revision)
}

// Ref is an operator's reference to a charm in a repository. Series is empty for any series. Revision is -1
// for the greatest revision.
type Ref struct {
	Series   string
	Name     string
	Revision int
}

// String returns the reference in the form that ParseRef reads, such as "precise/mysql-7".
func (r Ref) String() string {
	text := r.Name
	if r.Series != "" {
		text = r.Series + "/" + text
	}
	if r.Revision >= 0 {
		text += "-" + strconv.Itoa(r.Revision)
	}
	return text
}

// ParseRef parses NAME, SERIES/NAME, local:NAME or local:SERIES/NAME, each with or without -REVISION. Without it,
// the ref's Revision is -1. For schemes other than local it returns an error with advice.
func ParseRef(s string) (_ Ref, err error) {
	rest := s
	if scheme, after, ok := strings.Cut(s, ":"); ok {
		if scheme != "local" {
			return Ref{}, fmt.Errorf("cannot use charm URL %q: write ch:NAME for a charm from the store, local:NAME for one from a repository, "+
				"or a path such as ./NAME for a directory", s)
		}
		rest = after
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("invalid charm URL %q: %w", s, err)
		}
	}()

	var ref Ref
	if series, name, ok := strings.Cut(rest, "/"); ok {
		if err := CheckSeries(series); err != nil {
			return Ref{}, err
		}
		ref.Series = series
		rest = name
	}

	ref.Name, ref.Revision = cutRevision(rest)
	return ref, CheckName(ref.Name)
}

// cutRevision splits a text such as "mysql-7" at the last dash. If no number from 0 to MaxRevision without leading
// zeros follows that dash, cutRevision returns the whole text and the revision -1.
func cutRevision(s string) (name string, revision int) {
	dash := strings.LastIndexByte(s, '-')
	if dash < 0 {
		return s, -1
	}
	n, err := strconv.Atoi(s[dash+1:])
	if err != nil || n < 0 || n > MaxRevision || strconv.Itoa(n) != s[dash+1:] {
		return s, -1
	}

	return s[:dash], n
}
