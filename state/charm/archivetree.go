package charm

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// entry is a file, a folder or a link in an archive.
type entry struct {
	name string      // slash-separated, without "." or "..", no slash at its end
	mode fs.FileMode // as in keptMode
	zip  *zip.File   // nil: a folder without an entry of its own
}

// archiveTree is an archive's list of files whose names are all safe: they stay inside,
// none is there twice, and what contains something is a folder.
type archiveTree struct {
	entries map[string]entry
	limits  limits
}

// openArchive opens an archive, and bounds the memory that its list of files takes.
func openArchive(r io.ReaderAt, size int64, l limits) (*archiveTree, error) {
	if err := l.checkPacked(size); err != nil {
		return nil, err
	}

	// Reads during NewReader are of the list, later ones of the files.
	budget := &budgetReader{r: r, left: maxDirectory}
	zr, err := zip.NewReader(budget, size)
	budget.unlimited = true
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // newArchiveTree reports such a name, and why
		return nil, err
	}

	return newArchiveTree(zr, l)
}

// newArchiveTree checks the archive's list of files, and returns it as a tree.
func newArchiveTree(zr *zip.Reader, l limits) (*archiveTree, error) {
	t := &archiveTree{entries: make(map[string]entry, len(zr.File)), limits: l}
	if err := l.checkFiles(len(zr.File)); err != nil {
		return nil, err
	}

	// One such name shows that the archive's packer writes backslashes for slashes, in all names.
	foreign := slices.ContainsFunc(zr.File, func(f *zip.File) bool { return hasForeignSeparator(f.Name) })
	var total int64
	for _, f := range zr.File {
		total += int64(min(f.UncompressedSize64, uint64(l.unpacked)+1)) // cannot overflow
		if err := l.checkUnpacked(total); err != nil {
			return nil, err
		}
		if err := t.addFile(f, foreign || !isOfUnix(f)); err != nil {
			return nil, err
		}
	}

	return t, t.addParents()
}

// addFile adds a file. If hasBackslashes is set, backslashes in its name stand for slashes.
func (t *archiveTree) addFile(f *zip.File, hasBackslashes bool) error {
	name := f.Name
	if hasBackslashes {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	name, isDir := strings.CutSuffix(name, "/")
	if err := checkPath(name); err != nil {
		return fmt.Errorf("file %.200q: %w", f.Name, err)
	}
	if _, twice := t.entries[name]; twice {
		return fmt.Errorf("file %q is in the archive twice", name)
	}

	mode := f.Mode()
	if isDir {
		mode = mode&^fs.ModeType | fs.ModeDir
	}
	switch mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
		// A charm may have these.
	default:
		return fmt.Errorf("file %q is neither a file, a folder nor a link: %s", name, describeType(mode))
	}

	if !isOfUnix(f) {
		mode &^= fs.ModePerm // zip's guess is writable by everybody
	}
	t.entries[name] = entry{name: name, mode: mendMode(mode) & keptMode, zip: f}
	return nil
}

// isOfUnix reports whether the file was packed with permissions and names as Unix has them.
func isOfUnix(f *zip.File) bool {
	system := f.CreatorVersion >> 8
	return system == 3 || system == 19
}

// mendMode returns permissions for a file or directory that was packed without any. Some programs know of
// none.
func mendMode(mode fs.FileMode) fs.FileMode {
	switch {
	case mode.IsDir() && mode.Perm() == 0:
		return mode | 0o755
	case mode.IsRegular() && mode.Perm() == 0:
		return mode | 0o644
	}

	return mode
}

// hasForeignSeparator reports whether the name is that of a hook, an action or a source file with a
// backslash where a slash should be: such a file never runs. Elsewhere a backslash may be part of a
// name, as in units of systemd.
func hasForeignSeparator(name string) bool {
	dir, _, found := strings.Cut(name, `\`)
	return found && (isProgramDir(dir) || dir == "src")
}

// isProgram reports whether a file is there to be run: checkouts and archives lose the
// permission to, and charms that were published so are many.
func isProgram(name string) bool {
	return name == "dispatch" || name == "src/charm.py" || isProgramDir(path.Dir(name))
}

func isProgramDir(name string) bool { return name == "hooks" || name == "actions" }

// permitPrograms makes hooks and actions executable, also where a link leads to them.
func (t *archiveTree) permitPrograms(links *linkResolver) error {
	dirs := map[string]bool{}
	for _, name := range []string{"hooks", "actions"} {
		dir, err := links.resolve(name)
		if err != nil {
			return fmt.Errorf("link %q: %w", name, err)
		}
		dirs[dir] = true
	}

	for name := range t.entries {
		if !isProgram(name) && !dirs[path.Dir(name)] {
			continue
		}
		target, err := links.resolve(name)
		if err != nil {
			return fmt.Errorf("link %q: %w", name, err)
		}

		if e, ok := t.entries[target]; ok && e.mode.IsRegular() {
			e.mode |= 0o111
			t.entries[target] = e
		}
	}

	return nil
}

// addParents adds the directories that have no entry of their own. It returns an error if a file lies below
// an entry that is not a directory.
func (t *archiveTree) addParents() error {
	for _, e := range t.sortedEntries() {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			parent, known := t.entries[dir]
			if known && !parent.mode.IsDir() {
				return fmt.Errorf("file %q lies in %q, which is not a folder", e.name, dir)
			}
			if known {
				break
			}
			t.entries[dir] = entry{name: dir, mode: fs.ModeDir | 0o755}
		}

		if err := t.limits.checkFiles(len(t.entries)); err != nil {
			return err
		}
	}

	return nil
}

// sortedEntries returns the entries, each directory before its files.
func (t *archiveTree) sortedEntries() []entry {
	return slices.SortedFunc(maps.Values(t.entries), func(a, b entry) int {
		return strings.Compare(a.name, b.name)
	})
}

func (t *archiveTree) fileModes() map[string]fs.FileMode {
	modes := make(map[string]fs.FileMode, len(t.entries))
	for name, e := range t.entries {
		modes[name] = e.mode.Type()
	}

	return modes
}

// readFile returns the content of a file. It follows links within the archive.
func (t *archiveTree) readFile(name string) ([]byte, error) {
	links, err := t.readLinks()
	if err != nil {
		return nil, err
	}
	resolved, err := newLinkResolver(links, nil).resolve(name)
	if err != nil {
		return nil, err
	}

	e, ok := t.entries[resolved]
	if !ok || !e.mode.IsRegular() {
		return nil, fmt.Errorf("%q is not a file: %w", resolved, fs.ErrNotExist)
	}

	return readZip(e.zip)
}

// readLinks returns the target of each link.
func (t *archiveTree) readLinks() (map[string]string, error) {
	links := make(map[string]string)
	for name, e := range t.entries {
		if e.mode.Type() != fs.ModeSymlink {
			continue
		}
		if e.zip.UncompressedSize64 > maxPath {
			return nil, fmt.Errorf("link %q: its target has %d bytes, at most %d",
				name, e.zip.UncompressedSize64, maxPath)
		}

		target, err := readZip(e.zip)
		if err != nil {
			return nil, fmt.Errorf("link %q: %w", name, err)
		}
		links[name] = string(target)
	}

	return links, nil
}

func readZip(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readBounded(r)
}

// The longest path that Linux takes, its NUL included, and the longest name of one file.
const (
	maxPath     = 4096
	maxPathPart = 255
)

// checkPath returns an error for a name that would lead out of the charm's directory, and for one that no
// file can have.
func checkPath(name string) error {
	switch {
	case len(name) >= maxPath:
		return fmt.Errorf("its name has %d bytes, at most %d", len(name), maxPath-1)
	case !utf8.ValidString(name):
		return errors.New("its name is not UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("its name has a NUL byte")
	case strings.HasPrefix(name, "/"):
		return errors.New("its name is absolute")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return errors.New("its name leads out of the charm")
	case name == "." || !fs.ValidPath(name):
		return errors.New("its name is empty or has empty parts")
	}

	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxPathPart {
			return fmt.Errorf("a part of its name has %d bytes, at most %d", len(part), maxPathPart)
		}
	}

	return nil
}

func describeType(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}

	return "of type " + mode.Type().String()
}

// budgetReader fails once more than left bytes were read, until it is unlimited.
type budgetReader struct {
	r         io.ReaderAt
	left      int64
	unlimited bool
}

// ReadAt reads at the offset. It returns an error beyond the budget.
func (b *budgetReader) ReadAt(p []byte, off int64) (int, error) {
	if !b.unlimited {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, fmt.Errorf("the list of files is too big: more than %s", formatSize(maxDirectory))
		}
	}
	return b.r.ReadAt(p, off)
}
