package juju

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
	"bijou/state/lazyregexp"
)

// charmSource is how an operator named a charm, and where it is looked up.
type charmSource struct {
	name       string
	repository string   // a folder of charms; empty: the name is a path
	series     string   // that it is to be for, if it is looked up in the repository; empty: any
	tools      []string // the hook tools, which an archive may hold as links
}

// find reads the charm: from a folder, from an archive (unpacked below scratch), or by name from a
// repository. With a repository given, a folder or archive has to be written as a path.
func (c charmSource) find(scratch string) (charm.Found, state.Origin, error) {
	isPath := strings.HasPrefix(c.name, ".") || strings.HasPrefix(c.name, "/") || strings.HasPrefix(c.name, "~")
	if info, err := os.Stat(c.name); isPath || c.repository == "" && err == nil {
		return c.readPath(err == nil && info.Mode().IsRegular(), filepath.Join(scratch, "charm"))
	}
	ref, err := charm.ParseRef(c.name)
	const where = "say where charms are: --repository DIR (or JUJU_REPOSITORY)"
	switch {
	case c.repository == "" && !strings.Contains(c.name, ":"):
		err = console.Hint(fmt.Errorf("cannot find charm %q: there is no such folder", c.name), "give a charm's folder, or "+where)
	case err == nil && c.repository == "":
		err = console.Hint(fmt.Errorf("cannot find charm %q: no repository is given", c.name), where)
	case err == nil && ref.Series != "" && c.series != "" && ref.Series != c.series:
		err = fmt.Errorf("cannot use charm %q for series %q: it is one for %q", c.name, c.series, ref.Series)
	}
	if err != nil {
		return charm.Found{}, state.Origin{}, err
	}
	dir, err := filepath.Abs(c.repository)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find the repository %q: %w", c.repository, err)
	}
	ref.Series = cmp.Or(ref.Series, c.series)
	found, err := charm.Repository{Dir: dir}.Find(ref)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find charm %q: %w", c.name, err)
	}
	found.Series = cmp.Or(ref.Series, found.Series) // of one for several, the wanted
	return found, state.Origin{Repository: dir, Path: found.Path, Series: found.Series, Name: found.Meta.Name}, nil
}

// readPath reads a folder, or an archive, which it unpacks into scratch with the checks that a unit makes.
func (c charmSource) readPath(isArchive bool, scratch string) (charm.Found, state.Origin, error) {
	path, err := filepath.Abs(c.name)
	dir := path
	if isArchive && err == nil {
		dir, err = scratch, c.unpack(path, scratch)
	}
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot read charm %q: %w", c.name, err)
	}
	read, err := charm.ReadDir(dir)
	if err != nil {
		return charm.Found{}, state.Origin{}, err
	}
	return charm.Found{Charm: read, Path: dir}, state.Origin{Path: path, Name: read.Meta.Name}, nil
}

func (c charmSource) unpack(path, dir string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = charm.CheckArchive(file, info.Size(), c.tools) // it names no scratch folder
	}
	if err != nil {
		return err
	}
	return charm.Unpack(file, info.Size(), dir, charm.UnpackOptions{Tools: c.tools, Scratch: true})
}

// storeCharm checks the archive as a unit will, before it is stored.
func (o *operator) storeCharm(s state.Writer, found charm.Found, url charm.URL) (state.Charm, error) {
	file, err := os.CreateTemp("", "bijou-charm-")
	if err != nil {
		return state.Charm{}, fmt.Errorf("cannot archive the charm: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	tools := o.parts.HookTools
	info, err := charm.Archive(found.Path, file, charm.ArchiveOptions{Tools: tools, Revision: url.Revision})
	if err == nil {
		err = charm.CheckArchive(file, info.Size, tools)
	}
	if err != nil {
		return state.Charm{}, err
	}
	packed, err := charm.ReadArchive(file, info.Size)
	if err != nil {
		return state.Charm{}, err
	}
	sum, size, err := s.PutBlob(o.ctx, io.NewSectionReader(file, 0, info.Size))
	return state.NewCharm(url, packed, sum, size), err
}

// jujudFolder is where Juju has its binary, and charm libraries look for it; maxScanned
// bounds the files of a charm that are searched, in bytes: code is smaller.
const jujudFolder, maxScanned = "/var/lib/juju/tools/machine-", 1 << 20

var (
	jujudPattern = lazyregexp.New(regexp.QuoteMeta(jujudFolder))
	snapPattern  = lazyregexp.New(`\bsnap install [^\n'"]{1,40}|["']snap["'], *["']install["'][^\n\])]{0,40}|` +
		`(operator_libs_linux\.v\d+|charms\.layer|charmhelpers\.fetch)( import |\.)snap\b`)
	snapFilePattern = lazyregexp.New(`\blayer:snap\b|filename: *\S+\.snap\b`) // in YAML, where builds install some
)

// noteCalls warns of what a charm calls and this host lacks. Machines of other providers have jujud,
// and of their snapd nothing is known here. Of snaps libraries alone are no sign.
func (o *operator) noteCalls(charmDir string) {
	e, err := o.home.Choose(o.name)
	isLocal := err == nil && e.Provider == state.ProviderLocal
	links, _ := filepath.Glob(jujudFolder + "*/jujud")
	if names, _ := findInCode(charmDir, jujudPattern, jujudPattern, 1); isLocal && len(links) == 0 && len(names) > 0 {
		o.note("warning: the charm's %s calls %s*/jujud, which is not on this host: sudo bijou install --jujud puts it there", names[0], jujudFolder)
	}
	_, signs := findInCode(charmDir, snapPattern, snapFilePattern, 3, "charmhelpers", "operator_libs_linux", "docs", "tests", "venv")
	if _, err := exec.LookPath("snap"); len(signs) > 0 && (!isLocal || err != nil) {
		where := map[bool]string{true: "and this host has no snapd", false: "which need snapd on its machines"}
		o.note("warning: the charm installs snaps, %s: %s", where[isLocal], strings.Join(signs, ", "))
	}
}

// findInCode returns the names of up to maxFiles files in which the pattern is found, in YAML inYAML,
// and with each what was found. Hidden folders and those of the names without are left out.
func findInCode(charmDir string, pattern, inYAML lazyregexp.Regexp, maxFiles int, without ...string) (names, signs []string) {
	_ = filepath.WalkDir(charmDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case len(names) == maxFiles:
			return filepath.SkipAll
		case err == nil && d.IsDir() && path != charmDir && (d.Name()[0] == '.' || slices.Contains(without, d.Name())):
			return filepath.SkipDir
		case err != nil || !d.Type().IsRegular() || slices.Contains([]string{".md", ".rst", ".txt"}, filepath.Ext(path)):
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxScanned {
			return nil
		}
		data, _ := os.ReadFile(path)
		wanted := pattern
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			wanted = inYAML
		}
		if found := wanted.Compiled().Find(data); found != nil {
			name, _ := filepath.Rel(charmDir, path)
			names, signs = append(names, name), append(signs, fmt.Sprintf("%s has %q", name, bytes.TrimSpace(found)))
		}
		return nil
	})
	return names, signs
}

// readFile is bounded, since the operator may name a device or a pipe that never ends.
func readFile(path string, maxSize int64) ([]byte, error) { return durable.ReadUpTo(path, maxSize) }

// findTarget finds the charm to switch to, a revision that the environment has, or the
// greatest revision where the charm came from.
func (u *upgrade) findTarget(scratch string) (upgradeTarget, error) {
	c := u.cmd
	if c.Revision != nil {
		url := charm.URL{Series: u.current.URL.Series, Name: u.current.URL.Name, Revision: *c.Revision}
		_, err := state.Read(u.o.ctx, u.state, func(v *state.View) (state.Charm, error) { return v.Charm(url.String()) })
		if err == nil || state.IgnoreNotFound(err) != nil {
			return upgradeTarget{url: url, origin: u.service.Origin}, err
		}
	}
	found, origin, err := u.findCharm(scratch)
	if err != nil {
		return upgradeTarget{}, err
	}
	url := charm.URL{Series: u.current.URL.Series, Name: found.Meta.Name, Revision: found.Revision}
	t := upgradeTarget{url: url, origin: origin, found: found}
	switch {
	case c.Revision != nil && found.Revision != *c.Revision:
		return t, fmt.Errorf("%s has revision %d of charm %q, and the environment has no revision %d", found.Path, found.Revision, found.Meta.Name, *c.Revision)
	case c.Revision != nil, url.Name != u.current.URL.Name, url.Revision > u.current.URL.Revision:
		return t, nil
	}
	return u.bumpRevision(t)
}

func (u *upgrade) findCharm(scratch string) (charm.Found, state.Origin, error) {
	c, origin, tools := u.cmd, u.service.Origin, u.o.parts.HookTools
	repository := c.Repository
	switch {
	case c.Switch != "":
		return charmSource{c.Switch, repository, u.lookupSeries(), tools}.find(scratch)
	case repository == "" && origin.Repository == "":
		found, _, err := charmSource{origin.Path, "", "", tools}.find(scratch)
		return found, origin, err
	case repository == "":
		repository = origin.Repository
	}
	dir, err := filepath.Abs(repository)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find the repository %q: %w", repository, err)
	}
	ref := charm.Ref{Series: cmp.Or(origin.Series, u.lookupSeries()), Name: u.current.Meta.Name, Revision: -1}
	if c.Revision != nil {
		ref.Revision = *c.Revision
	}
	found, err := charm.Repository{Dir: dir}.Find(ref)
	return found, state.Origin{Repository: dir, Path: found.Path, Series: found.Series, Name: ref.Name}, err
}

// lookupSeries returns "" for any.
func (u *upgrade) lookupSeries() string {
	if u.cmd.ForceSeries || u.service.ForceSeries {
		return ""
	}
	return u.service.Series
}

// bumpRevision gives files whose revision is not newer than the service's charm the next
// revision, unless they are that charm's own files.
func (u *upgrade) bumpRevision(t upgradeTarget) (upgradeTarget, error) {
	isSame, err := u.o.isSameCharm(t.found, u.current)
	if err != nil {
		return upgradeTarget{}, err
	}
	if isSame {
		return upgradeTarget{url: u.current.URL, origin: t.origin}, nil
	}
	t.url.Revision, t.bumped = u.current.URL.Revision+1, true
	return t, nil
}

// isSameCharm reports whether the files are the charm's own.
func (o *operator) isSameCharm(found charm.Found, c state.Charm) (bool, error) {
	opts := charm.ArchiveOptions{Tools: o.parts.HookTools, Revision: c.URL.Revision}
	info, err := charm.Archive(found.Path, io.Discard, opts)
	return info.SHA256 == c.SHA256, err
}
