package charmsource

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state/charm"
	"bijou/state/osutil"
)

// Local is the source of the charms on this host. With a repository, a wish's name is a reference to a charm in it, as
// [charm.ParseRef] reads it: SERIES/NAME or NAME, with or without -REVISION. Without a repository, the name is the path
// of a charm's directory or archive. A wish's fields other than name, series and revision have no effect.
type Local struct {
	Repository string   // a directory of charms; empty if names are paths
	Tools      []string // the names of the hook tools, which an archive may hold as symlinks
	Scratch    string   // the directory where Resolve unpacks archives, and Fetch finds them; the caller removes it
}

var _ Source = (*Local)(nil)

// Resolve implements [Source]. It reads each charm, and returns it as the Charm of its release's file. The
// file has neither size nor sum, since its bytes depend on the revision that the caller chooses for it.
func (l *Local) Resolve(ctx context.Context, wishes ...Wish) ([]Answer, error) {
	var answers []Answer
	for _, w := range wishes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		release, err := l.resolve(w)
		answers = append(answers, Answer{release, err})
	}
	return answers, nil
}

// resolve returns a release of the charm that the wish names, in the repository or by its path. It returns
// ErrNotFound if the repository does not have the charm, or if the path does not exist. It returns a
// *[NoReleaseError] if the charm at a path does not have the wished revision.
func (l *Local) resolve(w Wish) (Release, error) {
	// Without a repository, the name is a path.
	find := l.readPath
	if l.Repository != "" {
		find = l.findInRepository
	}
	found, err := find(w)
	if err != nil {
		return Release{}, err
	}

	// In a repository, find has already looked for the wished revision.
	if w.Revision > 0 && found.Revision != w.Revision {
		return Release{}, &NoReleaseError{Name: found.Meta.Name, Wish: w}
	}
	// The Path of an archive's charm is below l.Scratch.
	path, err := filepath.Abs(cmp.Or(found.Archive, found.Path))
	if err != nil {
		return Release{}, err
	}

	return Release{
		Type:     TypeCharm,
		Name:     found.Meta.Name,
		Revision: found.Revision,
		File: File{
			What:  fmt.Sprintf("charm %s, revision %d", found.Meta.Name, found.Revision),
			URL:   path,
			Charm: &found,
		},
	}, nil
}

// findInRepository finds a charm in the repository. The wish's name is a reference to the charm, which can have
// a series and a revision. A wished revision replaces that of the reference, and the wished series applies if
// the reference has none. findInRepository returns ErrNotFound if the repository does not have the charm.
func (l *Local) findInRepository(w Wish) (charm.Found, error) {
	ref, err := charm.ParseRef(w.Name)
	if err != nil {
		return charm.Found{}, err
	}
	ref.Series = cmp.Or(ref.Series, w.Series)
	if w.Revision > 0 {
		ref.Revision = w.Revision
	}

	found, err := charm.Repository{Dir: l.Repository}.Find(ref)
	if errors.Is(err, charm.ErrNotInRepository) {
		return charm.Found{}, notFoundError{err}
	}
	if err != nil {
		return charm.Found{}, err
	}

	// A charm that is directly in the repository was found without a series.
	found.Series = cmp.Or(ref.Series, found.Series)
	return found, nil
}

// readPath reads the charm in a directory or archive, whose path is the wish's name. It unpacks an archive,
// with the same checks as a unit's agent. It returns ErrNotFound if the path does not exist.
func (l *Local) readPath(w Wish) (charm.Found, error) {
	path, err := filepath.Abs(w.Name)
	if err != nil {
		return charm.Found{}, fmt.Errorf("cannot read charm %q: %w", w.Name, err)
	}

	info, statErr := os.Stat(path)
	if statErr == nil && info.Mode().IsRegular() {
		return l.unpack(w.Name, path)
	}

	// If the path does not exist, ReadDir has the error to show, which becomes an ErrNotFound.
	c, err := charm.ReadDir(path)
	if err != nil && errors.Is(statErr, fs.ErrNotExist) {
		err = notFoundError{err}
	}
	return charm.Found{Charm: c, Path: path}, err
}

// unpack unpacks the archive at path below l.Scratch, and returns the archive's charm. archive is the path as
// the wish has it, for errors and for the result. unpack reads the charm from the archive, not from the unpacked
// directory, so that no error names a directory below l.Scratch.
func (l *Local) unpack(archive, path string) (found charm.Found, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read charm %q: %w", archive, err)
		}
	}()

	dir, err := os.MkdirTemp(l.Scratch, "archive-")
	if err != nil {
		return found, err
	}

	found.Path = filepath.Join(dir, "charm")
	found.Archive = archive
	found.Charm, err = charm.ReadPacked(path, found.Path, l.Tools)
	return found, err
}

// Fetch implements [Source]. It packs the files of f.Charm with f.Revision. The same files with the same
// revision always give the same bytes.
func (l *Local) Fetch(ctx context.Context, f File, path string) (sha384 string, err error) {
	if f.Charm == nil {
		return "", fmt.Errorf("cannot archive %s: the charm is not on this host", f.What)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	file, err := osutil.Create(path, 0o644)
	if err != nil {
		return "", fmt.Errorf("cannot archive the charm: %w", err)
	}
	defer file.Discard() // does nothing after Commit

	sum := sha512.New384()
	_, err = charm.Archive(f.Charm.Path, io.MultiWriter(file, sum), charm.ArchiveOptions{
		Tools:    l.Tools,
		Revision: f.Revision,
		Unpacked: f.Charm.Archive, // empty if Path was not unpacked from an archive
	})
	if err != nil {
		return "", err
	}
	if err := file.Commit(); err != nil {
		return "", fmt.Errorf("cannot archive the charm: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
