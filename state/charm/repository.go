package charm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Repository is a directory of charms, as SERIES/CHARM or CHARM. A charm's name is in its
// metadata, whatever its folder's is.
type Repository struct {
	Dir string
}

// Found is a charm in a repository.
type Found struct {
	*Charm
	Path   string // of its directory
	Series string // the folder above it; empty if it is in the repository itself
}

// ErrNotInRepository is returned if a repository has no such charm.
var ErrNotInRepository = errors.New("no such charm in the repository")

// Find returns the charm that ref names: among several the one with the greatest
// revision, and among those the first by path. If there is none, it returns
// ErrNotInRepository, with the charms there that could not be read and why.
func (r Repository) Find(ref Ref) (Found, error) {
	found, broken, err := r.findAll(ref)
	if err != nil {
		return Found{}, fmt.Errorf("cannot search repository %q: %w", r.Dir, err)
	}
	if len(found) == 0 {
		err := fmt.Errorf("charm %q in %q: %w", ref, r.Dir, ErrNotInRepository)
		return Found{}, errors.Join(append([]error{err}, broken...)...)
	}
	return slices.MaxFunc(found, func(a, b Found) int { return cmp.Compare(a.Revision, b.Revision) }), nil
}

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
			if !isCharm(path) {
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

func isCharm(dir string) bool {
	for _, name := range []string{"metadata.yaml", "charmcraft.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}
