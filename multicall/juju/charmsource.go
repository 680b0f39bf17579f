package juju

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/osutil"
)

// charmSource is how an operator named a charm, and where it is looked up.
type charmSource struct {
	name       string
	repository string   // a folder of charms; empty: the name is a path
	series     string   // that it is to be for, if it is looked up in the repository; empty: any
	tools      []string // the hook tools, which an archive may hold as links
}

// isPath reports whether the name is written as a path.
func (c charmSource) isPath() bool {
	return strings.HasPrefix(c.name, ".") || strings.HasPrefix(c.name, "/") || strings.HasPrefix(c.name, "~")
}

// storeName returns the name of a charm or bundle if the operator means the store's. That is ch:NAME, or
// NAME if there is no repository. It returns an error if NAME is also a directory with a charm, since then
// either can be meant.
func (c charmSource) storeName(verb string) (name string, isStore bool, err error) {
	name, isStore = strings.CutPrefix(c.name, "ch:")
	if isStore {
		if err := charm.CheckName(name); err != nil {
			return "", false, console.Usage(fmt.Errorf("cannot use %q as the name of a charm of the store: %w", c.name, err))
		}
		return name, true, nil
	}
	if c.repository != "" || charm.CheckName(c.name) != nil {
		return "", false, nil
	}

	_, isBundle := findBundle(c.name)
	if isBundle || charm.IsCharm(c.name) || isZip(c.name) {
		err := fmt.Errorf("cannot %s %q: it could be the file or directory here, or a charm of the store", verb, c.name)
		return "", false, console.Usage(console.Hint(err,
			fmt.Sprintf("for the one here: juju %s ./%s", verb, c.name),
			fmt.Sprintf("for the store's: juju %s ch:%s", verb, c.name)))
	}
	return c.name, true, nil
}

// isZip reports whether a file begins like a zip archive.
func isZip(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()

	var begin [2]byte
	_, err = io.ReadFull(file, begin[:])
	return err == nil && string(begin[:]) == "PK"
}

// find reads the charm from a directory, from an archive (unpacked below scratch), or by its name from a
// repository. If a repository is given, a directory or archive must be written as a path.
func (c charmSource) find(scratch string) (charm.Found, state.Origin, error) {
	if info, err := os.Stat(c.name); c.isPath() || c.repository == "" && err == nil {
		return c.readPath(err == nil && info.Mode().IsRegular(), filepath.Join(scratch, "charm"))
	}
	ref, err := charm.ParseRef(c.name)

	const where = "give the repository: --repository DIR (or JUJU_REPOSITORY)"
	switch {
	case c.repository == "" && !strings.Contains(c.name, ":"):
		err = console.Hint(fmt.Errorf("cannot find charm %q: no such directory", c.name),
			"give a charm's directory, or "+where)
	case err == nil && c.repository == "":
		err = console.Hint(fmt.Errorf("cannot find charm %q: no repository given", c.name), where)
	case err == nil && ref.Series != "" && c.series != "" && ref.Series != c.series:
		err = fmt.Errorf("cannot use charm %q for series %q: it is for %q", c.name, c.series, ref.Series)
	}
	if err != nil {
		return charm.Found{}, state.Origin{}, err
	}

	ref.Series = cmp.Or(ref.Series, c.series)
	found, origin, err := findInRepository(c.repository, ref)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find charm %q: %w", c.name, err)
	}
	return found, origin, nil
}

// findInRepository reads the charm from a repository. It gives a charm for several series the wanted one.
func findInRepository(repository string, ref charm.Ref) (charm.Found, state.Origin, error) {
	dir, err := filepath.Abs(repository)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find the repository %q: %w", repository, err)
	}
	found, err := charm.Repository{Dir: dir}.Find(ref)
	if err != nil {
		return charm.Found{}, state.Origin{}, err
	}

	found.Series = cmp.Or(ref.Series, found.Series)
	return found, state.Origin{
		Repository: dir,
		Path:       found.Path,
		Series:     found.Series,
		Name:       found.Meta.Name,
	}, nil
}

// readPath reads a directory or an archive. It unpacks an archive into scratch, with the same checks as a
// unit.
func (c charmSource) readPath(isArchive bool, scratch string) (charm.Found, state.Origin, error) {
	path, err := filepath.Abs(c.name)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot read charm %q: %w", c.name, err)
	}

	found := charm.Found{Path: path}
	if isArchive {
		found.Path = scratch
		found.Archive = c.name
		if found.Charm, err = c.unpack(path, scratch); err != nil {
			return charm.Found{}, state.Origin{}, fmt.Errorf("cannot read charm %q: %w", c.name, err)
		}
	} else if found.Charm, err = charm.ReadDir(path); err != nil {
		if hint := hintUnpacked(c.name, err); hint != "" {
			err = console.Hint(err, hint)
		}
		return charm.Found{}, state.Origin{}, err
	}

	return found, state.Origin{Path: path, Name: found.Meta.Name}, nil
}

// hintUnpacked returns the command for the charm's directory where the archive is missing that charmcraft would
// have packed from it; "" elsewhere.
func hintUnpacked(archive string, err error) string {
	dir := filepath.Dir(archive)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Ext(archive) != ".charm" {
		return ""
	}
	if _, err := charm.ReadDir(dir); err != nil {
		return ""
	}

	if !strings.ContainsRune(dir, '/') {
		dir = "./" + dir // a bare name is the store's
	}
	return "juju deploy " + quoteShellWords([]string{filepath.ToSlash(dir)}) + " takes the directory; nothing must be packed"
}

// unpack reads the charm from the archive itself, so that no error names the scratch folder.
func (c charmSource) unpack(path, dir string) (*charm.Charm, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := charm.CheckArchive(file, info.Size(), c.tools); err != nil {
		return nil, err
	}

	options := charm.UnpackOptions{Tools: c.tools, Scratch: true}
	if err := charm.Unpack(file, info.Size(), dir, options); err != nil {
		return nil, err
	}

	return charm.ReadArchive(file, info.Size())
}

// storeCharm packs the charm, checks the archive as a unit will, and stores it.
func (o *operator) storeCharm(s state.Writer, found charm.Found, url charm.URL) (state.Charm, error) {
	file, err := os.CreateTemp("", "bijou-charm-")
	if err != nil {
		return state.Charm{}, fmt.Errorf("cannot archive the charm: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()

	tools := o.parts.HookTools
	info, err := charm.Archive(found.Path, file, charm.ArchiveOptions{
		Tools:    tools,
		Revision: url.Revision,
		Unpacked: found.Archive,
	})
	if err != nil {
		return state.Charm{}, err
	}
	if err := charm.CheckArchive(file, info.Size, tools); err != nil {
		return state.Charm{}, err
	}

	packed, err := charm.ReadArchive(file, info.Size)
	if err != nil {
		return state.Charm{}, err
	}
	sum, size, err := s.PutBlob(o.ctx, io.NewSectionReader(file, 0, info.Size))
	return state.NewCharm(url, packed, sum, size), err
}

// readFile is bounded, since the operator may name a device or a pipe that never ends.
func readFile(path string, maxSize int64) ([]byte, error) { return osutil.ReadUpTo(path, maxSize) }
