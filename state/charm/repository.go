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

// Repository is a directory of charms, as SERIES/CHARM or CHARM. A charm's name is in its
// metadata, whatever its folder's is.
type Repository struct {
	Dir string
}

// Found is a charm in a repository.
type Found struct {
	*Charm
	Path    string // of its directory
	Archive string // the name of the archive that Path was unpacked from; empty: there is none
	Series  string // the folder above it; empty if it is in the repository itself
}

// ErrNotInRepository is returned if a repository has no such charm.
var ErrNotInRepository = errors.New("no such charm in the repository")

// Find returns the charm that ref names. Among several it prefers the greatest revision, then a charm in the
// repository itself over one in a series' directory, then the first by name of the directories. If there is
// none, it returns ErrNotInRepository, with the charms there that could not be read and why.
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

// findAll returns all charms in the repository that ref can mean, and the errors of those that cannot be
// read.
func (r Repository) findAll(ref Ref) (found []Found, broken []error, err error) {
	if _, err := os.ReadDir(r.Dir); err != nil {
		return nil, nil, err
	}

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

func (r Repository) readFound(path, dir string) (Found, error) {
	c, err := ReadDir(path)
	if err != nil {
		return Found{}, err
	}

	f := Found{Charm: c, Path: path}
	if series := filepath.Dir(dir); series != "." && CheckSeries(series) == nil {
		f.Series = series
	}
	return f, nil
}

func (f Found) matchesRef(ref Ref) bool {
	if f.Meta.Name != ref.Name || ref.Revision >= 0 && f.Revision != ref.Revision {
		return false
	}
	if ref.Series == "" || f.Series == ref.Series {
		return true
	}

	return f.Series == "" && f.Meta.Supports(ref.Series)
}

// IsCharm reports whether dir is a charm's, by its files.
func IsCharm(dir string) bool {
	for _, name := range []string{"metadata.yaml", "charmcraft.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// URL names one revision of a charm: "local:precise/mysql-7".
type URL struct {
	Series   string
	Name     string
	Revision int
}

// String prints the URL as ParseURL reads it.
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

// ParseURL reads a charm URL with all of its three parts.
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

// ShortURL returns a charm's URL without its series, as newer versions of Juju write it: local:mysql-3.
func ShortURL(text string) string {
	url, err := ParseURL(text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("local:%s-%d", url.Name, url.Revision)
}

// Ref is an operator's reference to a charm in a repository. Series is empty if any will
// do, Revision -1 if the greatest is meant.
type Ref struct {
	Series   string
	Name     string
	Revision int
}

// String prints the reference as ParseRef reads it: "precise/mysql-7".
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

// ParseRef reads NAME, SERIES/NAME, local:NAME or local:SERIES/NAME, each with
// or without -REVISION. Any other scheme is refused with advice.
func ParseRef(s string) (_ Ref, err error) {
	rest := s
	if scheme, after, ok := strings.Cut(s, ":"); ok {
		if scheme != "local" {
			return Ref{}, fmt.Errorf("cannot use charm URL %q: a charm of the store is ch:NAME, one of a repository local:NAME, "+
				"and a directory a path like ./NAME", s)
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

// cutRevision splits "mysql-7"; the revision is -1 if there is none.
func cutRevision(s string) (name string, revision int) {
	dash := strings.LastIndexByte(s, '-')
	if dash < 0 {
		return s, -1
	}
	n, err := strconv.Atoi(s[dash+1:])
	if err != nil || n < 0 || n > maxRevision || strconv.Itoa(n) != s[dash+1:] {
		return s, -1
	}

	return s[:dash], n
}
