package charm

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// ArchiveOptions are options of Archive.
type ArchiveOptions struct {
	// Tools are the names of the hook tools. A symlink with such a name may have any target.
	Tools []string
	// Revision replaces the revision of the directory's charm in the archive, if it is above 0.
	Revision int
	// Unpacked names the archive that the directory was unpacked from. All files are then archived with their
	// permissions, and errors name the archive. It is empty for an author's directory.
	Unpacked string
	// Former archives the charm as older binaries did, to recognize their archives. They ignored .jujuignore,
	// and kept the permissions of files.
	Former bool
}

// ArchiveInfo describes what was archived.
type ArchiveInfo struct {
	SHA256   string // sum of the archive, in hex
	Size     int64  // size of the archive, in bytes
	Unpacked int64  // size of all files together, in bytes
	Files    int    // number of files, directories and symlinks
}

// Archive writes the charm in dir to w as a zip archive. The same files with the same executable bits always
// give the same bytes: names are sorted, times are fixed, permissions are 0644 or 0755 regardless of the
// umask, and every archive has a revision file.
//
// It leaves out the directories of version control, files that tox and editors leave behind, the directory
// build, symlinks of venv/bin to the host's Python, and files that .jujuignore names. It returns an error
// that names the file for a socket, a pipe, a device, or a symlink that points outside the charm. It also
// returns an error if the charm exceeds the limits.
//
// With opts.Unpacked or opts.Former, files keep their permissions. With opts.Unpacked alone, only the symlinks to
// Python are left out. With opts.Former, other rules decide which files are left out, besides these symlinks.
func Archive(dir string, w io.Writer, opts ArchiveOptions) (_ ArchiveInfo, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot archive charm %q: %w", cmp.Or(opts.Unpacked, dir), err)
		}
	}()
	return archive(dir, w, opts, defaultLimits())
}

// archive does what [Archive] does, with the given limits.
func archive(dir string, w io.Writer, opts ArchiveOptions, l limits) (ArchiveInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ArchiveInfo{}, err
	}
	defer root.Close()

	rules, err := opts.readRules(root)
	if err != nil {
		return ArchiveInfo{}, err
	}
	c, err := readDir(root, rules)
	if err != nil {
		return ArchiveInfo{}, err
	}

	// Every archive has a revision file. c.made has the files that charmcraft would generate.
	revision := revisionText(cmp.Or(opts.Revision, c.Revision))
	generated := append([]item{{name: revisionName, mode: 0o644, text: string(revision)}}, c.made...)
	lister := &itemLister{root: root, rules: rules, mode: opts.packedMode, limits: l, items: generated}
	items, err := lister.list(opts.Tools)
	if err != nil {
		return ArchiveInfo{}, err
	}

	out := &archiveWriter{w: w, sum: sha256.New(), limits: l}
	// addFile gives the buffer each file in turn.
	a := &archiver{root: root, zip: zip.NewWriter(out), limits: l, content: bufio.NewReaderSize(nil, sampleSize)}
	for _, it := range items {
		if err := a.addItem(it); err != nil {
			return ArchiveInfo{}, fmt.Errorf("file %q: %w", it.name, err)
		}
	}

	if err := a.zip.Close(); err != nil {
		return ArchiveInfo{}, err
	}

	return ArchiveInfo{
		SHA256:   hex.EncodeToString(out.sum.Sum(nil)),
		Size:     out.n,
		Unpacked: a.unpacked,
		Files:    len(items),
	}, nil
}

// item is a file, a directory or a symlink to add to an archive.
type item struct {
	name   string
	mode   fs.FileMode // mode in the archive
	target string      // target of a symlink
	size   int64       // size of a file when it was listed
	text   string      // content of a file that is generated for the archive
}

// revisionName is a file in every archive, even if the charm's directory does not have it.
const revisionName = "revision"

// readRules reads the rules for files to leave out of the archive. There are none for an unpacked archive, whose
// files all belong to the charm. With Former, there are instead the rules of the first versions of bijou, also for
// an unpacked archive.
func (o ArchiveOptions) readRules(root *os.Root) (ignoreRules, error) {
	switch {
	case o.Former:
		rules, err := parseIgnoreRules(formerlyIgnored)
		return ignoreRules{defaults: rules}, err
	case o.Unpacked != "":
		return ignoreRules{}, nil
	}

	return readIgnoreRules(root)
}

// packedMode returns the type and permissions that a file has in the archive. A symlink, and a file of an
// unpacked archive, keep their mode. With Former, each file has the mode that older binaries gave it.
func (o ArchiveOptions) packedMode(mode fs.FileMode) fs.FileMode {
	switch {
	case o.Former:
		return mode & (fs.ModeType | fs.ModePerm)
	case o.Unpacked != "" || mode.Type() == fs.ModeSymlink:
		return mode & keptMode
	}

	// The author's umask must not change the archive, so only the owner's executable bit counts.
	permissions := fs.FileMode(0o644)
	if mode.IsDir() || mode&0o100 != 0 {
		permissions = 0o755
	}
	return mode&keptMode&^fs.ModePerm | permissions
}

// keptMode has the bits of a file's mode that a charm keeps.
const keptMode = fs.ModeType | fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// itemLister lists the charm's files. Its field items already has the files that are generated for the
// archive.
type itemLister struct {
	root   *os.Root
	rules  ignoreRules
	mode   func(fs.FileMode) fs.FileMode // returns a file's mode in the archive
	limits limits
	items  []item
	links  map[string]string // targets of symlinks, by name
	total  int64             // size of all files, in bytes
}

// list adds the charm's files to l.items, and returns all items, sorted by name. It leaves out the symlinks that
// leaveOutInterpreter describes. It returns an error if another symlink points outside the charm, unless the
// symlink has the name of one of the hook tools.
func (l *itemLister) list(tools []string) ([]item, error) {
	l.links = make(map[string]string)
	if err := fs.WalkDir(l.root.FS(), ".", l.visit); err != nil {
		return nil, err
	}

	links := newLinkResolver(l.links, tools)
	l.leaveOutInterpreter(links)
	slices.SortFunc(l.items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return l.items, links.checkLinks()
}

// leaveOutInterpreter leaves out the symlinks of a virtual environment to Python on the author's host.
// charmcraft also leaves them out, since its dispatch file creates such a symlink on the machine.
func (l *itemLister) leaveOutInterpreter(links *linkResolver) {
	var out []string
	for name := range l.links {
		// Match fails only for an invalid pattern.
		if isNamed, _ := path.Match("venv/bin/python*", name); !isNamed {
			continue
		}
		if _, err := links.resolve(name); errors.Is(err, errOutside) {
			out = append(out, name)
		}
	}

	for _, name := range out {
		delete(l.links, name)
	}
	l.items = slices.DeleteFunc(l.items, func(it item) bool { return slices.Contains(out, it.name) })
}

// visit adds one file of the charm's directory to the list, unless the rules leave it out. fs.WalkDir calls
// visit. It returns an error as soon as the list exceeds the limits.
func (l *itemLister) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if name == revisionName && d.IsDir() {
		return errors.New(`"revision" is a directory, where a file with a number should be`)
	}
	// The list already has the revision file, since archive generates it.
	if name == "." || name == revisionName {
		return nil
	}

	isIgnored := l.rules.match(name, d.IsDir())
	if isIgnored && d.IsDir() {
		return fs.SkipDir
	}
	if isIgnored {
		return nil
	}

	it, err := l.newItem(name, d)
	if err != nil {
		return err
	}

	if it.mode.Type() == fs.ModeSymlink {
		l.links[name] = it.target
	}
	// The size is checked here too, so that the error comes before a gigabyte has been archived. min keeps the
	// total from overflowing.
	l.total = min(l.total+it.size, l.limits.unpacked+1)
	if err := l.limits.checkUnpacked(l.total); err != nil {
		return fmt.Errorf("file %q: %w", name, err)
	}

	l.items = append(l.items, it)
	return l.limits.checkFiles(len(l.items))
}

// newItem returns the item for a file, directory or symlink of a charm. It returns an error for other types, and
// for a name that an archive cannot have.
func (l *itemLister) newItem(name string, d fs.DirEntry) (item, error) {
	if err := checkPath(name); err != nil {
		return item{}, fmt.Errorf("file %q: %w", name, err)
	}
	if hasForeignSeparator(name) {
		return item{}, fmt.Errorf("file %q: its name has a backslash instead of a slash", name)
	}
	info, err := d.Info()
	if err != nil {
		return item{}, err
	}

	it := item{name: name, mode: l.mode(info.Mode())}
	switch it.mode.Type() {
	case fs.ModeDir:
		// A directory has no content.
	case 0:
		it.size = info.Size()
	case fs.ModeSymlink:
		it.target, err = l.root.Readlink(name)
	default:
		err = fmt.Errorf("file %q cannot be in a charm: it is %s", name, describeType(it.mode))
	}

	return it, err
}

// archiver adds items to a zip archive.
type archiver struct {
	root     *os.Root
	zip      *zip.Writer
	content  *bufio.Reader // reads the file that is being added; reused for all files
	unpacked int64         // size of all files so far, in bytes
	limits   limits
}

// archiveTime is the time of every file in an archive. It is the earliest time that zip can represent.
var archiveTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// addItem adds the item to the archive. The content is the text of a generated file, the target of a symlink,
// or the content of a file in the directory.
func (a *archiver) addItem(it item) error {
	// Only a generated file has a text.
	if it.mode.IsRegular() && it.text == "" {
		return a.addFile(it)
	}

	h := newHeader(it)
	if it.mode.IsDir() {
		h.Name = it.name + "/"
		h.Method = zip.Store
	}

	w, err := a.zip.CreateHeader(h)
	if err != nil {
		return err
	}

	// A directory has neither a text nor a target.
	_, err = io.WriteString(w, cmp.Or(it.text, it.target))
	return err
}

// newHeader returns the header of a compressed file with the item's name and mode.
func newHeader(it item) *zip.FileHeader {
	h := &zip.FileHeader{Name: it.name, Modified: archiveTime, Method: zip.Deflate}
	h.SetMode(it.mode)
	return h
}

// addFile adds a file to the archive. It compresses the file, unless the file's first sampleSize bytes show
// that compression does not help. Otherwise files that are already compressed would grow, and a charm just
// below the limit could not be archived again.
func (a *archiver) addFile(it item) error {
	f, err := a.root.Open(it.name)
	if err != nil {
		return err
	}
	defer f.Close()

	a.content.Reset(f)
	begin, err := a.content.Peek(sampleSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	h := newHeader(it)
	if len(begin) == sampleSize && !isCompressible(begin) {
		h.Method = zip.Store
	}
	w, err := a.zip.CreateHeader(h)
	if err != nil {
		return err
	}

	return a.copyContent(w)
}

// sampleSize is how many bytes of a file are compressed to find out whether compression helps.
const sampleSize = 64 << 10

// isCompressible reports whether compression makes the data smaller by more than 1/32. It returns true if the
// compression fails.
func isCompressible(data []byte) bool {
	var out bytes.Buffer
	// NewWriter fails only for an unknown level.
	w, _ := flate.NewWriter(&out, flate.DefaultCompression)
	_, errWrite := w.Write(data)
	errClose := w.Close()
	if errWrite != nil || errClose != nil {
		return true
	}

	return out.Len() < len(data)*31/32
}

// copyContent copies the content of the file that is being added. It returns an error if all files so far exceed
// the limit.
func (a *archiver) copyContent(w io.Writer) error {
	// One byte more than the limit shows that the files exceed it.
	n, err := io.Copy(w, io.LimitReader(a.content, a.limits.unpacked-a.unpacked+1))
	a.unpacked += n
	if err != nil {
		return err
	}
	return a.limits.checkUnpacked(a.unpacked)
}

// archiveWriter writes the archive, and computes its sum and size.
type archiveWriter struct {
	w      io.Writer
	sum    hash.Hash
	n      int64
	limits limits
}

// Write writes to the archive. It returns an error if the archive becomes too large.
func (m *archiveWriter) Write(p []byte) (int, error) {
	if err := m.limits.checkPacked(m.n + int64(len(p))); err != nil {
		return 0, err
	}
	n, err := m.w.Write(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	return n, err
}
