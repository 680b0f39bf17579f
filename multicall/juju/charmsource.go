package juju

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/osutil"
)

// charmSource is a charm as an operator named it, and the place to look it up.
type charmSource struct {
	name       string
	repository string   // a directory of charms; empty if the name is a path
	series     string   // the wanted series of a charm in the repository; empty for any
	tools      []string // the hook tools, whose symlinks an archive may contain
}

// isPath reports whether the name is written as a path.
func (c charmSource) isPath() bool {
	return strings.HasPrefix(c.name, ".") || strings.HasPrefix(c.name, "/") || strings.HasPrefix(c.name, "~")
}

// storeName returns the name of a charm or bundle in the store, if the operator named one as ch:NAME, or as
// NAME without a repository. It returns an error if NAME after ch: is invalid. For a NAME without
// ch:, it returns an error if a bundle, a charm or an archive here has that name, since the operator may mean
// either. verb is the juju command, for messages.
func (c charmSource) storeName(verb string) (name string, isStore bool, err error) {
	name, isStore = strings.CutPrefix(c.name, "ch:")
	if isStore {
		if err := charm.CheckName(name); err != nil {
			return "", false, console.Usage(fmt.Errorf("cannot use %q as the name of a charm in the store: %w", c.name, err))
		}
		return name, true, nil
	}
	if c.repository != "" || charm.CheckName(c.name) != nil {
		return "", false, nil
	}

	_, isBundle := findBundle(c.name)
	if isBundle || charm.IsCharm(c.name) || isZip(c.name) {
		err := fmt.Errorf("cannot %s %q: the name could mean the file or directory here, or a charm from the store", verb, c.name)
		return "", false, console.Usage(console.Hint(err,
			fmt.Sprintf("for the file or directory: juju %s ./%s", verb, c.name),
			fmt.Sprintf("for the charm from the store: juju %s ch:%s", verb, c.name)))
	}
	return c.name, true, nil
}

// isZip reports whether a file begins like a zip archive. It returns false for a file that it cannot read.
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

// find finds a charm on this host: a directory, an archive (which it unpacks below scratch), or a name in a
// repository. If a repository is given, a directory or archive must be written as a path.
func (c charmSource) find(ctx context.Context, scratch string) (*charmRelease, error) {
	_, statErr := os.Stat(c.name)
	isFileHere := c.repository == "" && statErr == nil
	if c.isPath() || isFileHere {
		r, err := resolveLocal(ctx, &charmsource.Local{Tools: c.tools, Scratch: scratch}, charmsource.Wish{Name: c.name})
		if hint := hintUnpacked(c.name, err); hint != "" { // there is no hint without an error
			return nil, console.Hint(err, hint)
		}
		return r, err
	}

	// A name with a colon can be a charm's URL, whose errors follow below.
	const where = "give the repository: --repository DIR (or JUJU_REPOSITORY)"
	if c.repository == "" && !strings.Contains(c.name, ":") {
		return nil, console.Hint(fmt.Errorf("cannot find charm %q: no such directory", c.name),
			"give a charm's directory, or "+where)
	}

	ref, err := charm.ParseRef(c.name)
	if err != nil {
		return nil, err
	}
	if c.repository == "" {
		return nil, console.Hint(fmt.Errorf("cannot find charm %q: no repository given", c.name), where)
	}
	if ref.Series != "" && c.series != "" && ref.Series != c.series {
		return nil, fmt.Errorf("cannot use charm %q for series %q: its URL names series %q", c.name, c.series, ref.Series)
	}

	r, err := c.findInRepository(ctx, charmsource.Wish{Name: c.name, Series: c.series})
	if err != nil {
		return nil, fmt.Errorf("cannot find charm %q: %w", c.name, err)
	}
	return r, nil
}

// findInRepository finds the wished charm in c.repository.
func (c charmSource) findInRepository(ctx context.Context, w charmsource.Wish) (*charmRelease, error) {
	dir, err := filepath.Abs(c.repository)
	if err != nil {
		return nil, fmt.Errorf("cannot find the repository %q: %w", c.repository, err)
	}
	return resolveLocal(ctx, &charmsource.Local{Repository: dir, Tools: c.tools}, w)
}

// resolveLocal returns the release that source, which is on this host, has for a wish.
func resolveLocal(ctx context.Context, source *charmsource.Local, w charmsource.Wish) (*charmRelease, error) {
	release, err := charmsource.ResolveOne(ctx, source, w)
	if err != nil {
		return nil, err
	}
	return &charmRelease{
		Release:    release,
		source:     source,
		repository: source.Repository,
		found:      *release.File.Charm, // which Local always sets
	}, nil
}

// hintUnpacked returns a hint to deploy a charm's directory, if err means that the archive is missing and
// charmcraft would have packed it from that directory. Otherwise it returns "".
func hintUnpacked(archive string, err error) string {
	dir := filepath.Dir(archive)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Ext(archive) != ".charm" {
		return ""
	}
	if _, err := charm.ReadDir(dir); err != nil {
		return ""
	}

	if !strings.ContainsRune(dir, '/') {
		// A bare name would mean a charm in the store.
		dir = "./" + dir
	}
	return "juju deploy " + quoteShellWords([]string{filepath.ToSlash(dir)}) + " deploys the directory; it does not have to be packed"
}

// readFile reads a file. It returns an error if the file has more than maxSize bytes, since the operator may
// name a device or a pipe that never ends.
func readFile(path string, maxSize int64) ([]byte, error) { return osutil.ReadUpTo(path, maxSize) }
