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

// entry is a file, a directory or a symlink in an archive.
type entry struct {
	name string      // slash-separated, without "." and "..", and without a slash at its end
	mode fs.FileMode // only bits of keptMode
	zip  *zip.File   // nil for a directory that the archive does not list
}

// archiveTree is the list of files in an archive, after these checks: no name leads outside, no name occurs
// twice, and each parent of a file is a directory.
type archiveTree struct {
	entries map[string]entry
	limits  limits
	links   map[string]string // the result of readLinks; nil before its first call
}

// openArchive opens an archive, and limits the memory for its list of files.
func openArchive(r io.ReaderAt, size int64, l limits) (*archiveTree, error) {
	if err := l.checkPacked(size); err != nil {
		return nil, err
	}

	// NewReader reads the list of files. Later reads are for the files' contents.
	budget := &budgetReader{r: r, left: maxDirectory}
	zr, err := zip.NewReader(budget, size)
	budget.unlimited = true
	// newArchiveTree returns a better error than ErrInsecurePath.
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
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

	// One such name is enough to show that the program that packed the archive wrote backslashes for slashes
	// in all names.
	isForeign := slices.ContainsFunc(zr.File, func(f *zip.File) bool { return hasForeignSeparator(f.Name) })

	var total int64
	for _, f := range zr.File {
		// min keeps total from overflowing.
		total += int64(min(f.UncompressedSize64, uint64(l.unpacked)+1))
		if err := l.checkUnpacked(total); err != nil {
			return nil, err
		}
		if err := t.addFile(f, isForeign || !isOfUnix(f)); err != nil {
			return nil, err
		}
	}

	return t, t.addParents()
}

// addFile adds a file, directory or symlink. It returns an error for other types, for an invalid name, and for
// a name that the tree already has. If hasBackslashes is true, backslashes in the name stand for slashes.
func (t *archiveTree) addFile(f *zip.File, hasBackslashes bool) error {
	name := f.Name
	if hasBackslashes {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	// In a zip archive, the name of a directory ends with a slash.
	name, isDir := strings.CutSuffix(name, "/")
	if err := checkPath(name); err != nil {
		return fmt.Errorf("file %.200q: %w", f.Name, err)
	}
	if _, isListed := t.entries[name]; isListed {
		return fmt.Errorf("file %q appears twice in the archive", name)
	}

	mode := f.Mode()
	if isDir {
		mode = mode&^fs.ModeType | fs.ModeDir
	}
	switch mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
		// These types are allowed.
	default:
		return fmt.Errorf("file %q is neither a file, a directory nor a symlink: %s", name, describeType(mode))
	}

	if !isOfUnix(f) {
		// For other systems, package zip can return permissions that let everybody write. mendMode adds the
		// usual ones.
		mode &^= fs.ModePerm
	}
	t.entries[name] = entry{name: name, mode: mendMode(mode) & keptMode, zip: f}
	return nil
}

// isOfUnix reports whether the file was packed with Unix permissions and names.
func isOfUnix(f *zip.File) bool {
	// These are the zip format's numbers for the systems.
	const unix = 3
	const macOS = 19
	system := f.CreatorVersion >> 8
	return system == unix || system == macOS
}

// mendMode adds permissions to a mode without any, since some programs pack files without permissions.
func mendMode(mode fs.FileMode) fs.FileMode {
	switch {
	case mode.IsDir() && mode.Perm() == 0:
		return mode | 0o755
	case mode.IsRegular() && mode.Perm() == 0:
		return mode | 0o644
	}

	return mode
}

// hasForeignSeparator reports whether the name of a hook, an action or a source file has a backslash instead
// of a slash. Such a file would never run. In other names a backslash can be intended, as in units of
// systemd.
func hasForeignSeparator(name string) bool {
	dir, _, found := strings.Cut(name, `\`)
	return found && (isProgramDir(dir) || dir == "src")
}

// isProgram reports whether a file of a charm must be executable. In many published charms these files have
// lost their executable bits in a checkout or an archive.
func isProgram(name string) bool {
	return name == "dispatch" || name == "src/charm.py" || isProgramDir(path.Dir(name))
}

// isProgramDir reports whether all files in the directory are programs.
func isProgramDir(name string) bool { return name == "hooks" || name == "actions" }

// permitPrograms makes programs executable. It follows symlinks to programs, and hooks and actions can themselves
// be symlinks to directories.
func (t *archiveTree) permitPrograms(links *linkResolver) error {
	dirs := map[string]bool{} // that contain hooks or actions
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

		// A symlink can lead to a file that a hook will create, or to a directory.
		if e, ok := t.entries[target]; ok && e.mode.IsRegular() {
			e.mode |= 0o111
			t.entries[target] = e
		}
	}

	return nil
}

// addParents adds the directories that the archive does not list. It returns an error if a file lies below an
// entry that is not a directory, or if the tree then has too many files.
func (t *archiveTree) addParents() error {
	for _, e := range t.sortedEntries() {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			parent, known := t.entries[dir]
			if known && !parent.mode.IsDir() {
				return fmt.Errorf("file %q lies in %q, which is not a directory", e.name, dir)
			}
			// The parents of a known directory are also known, since sortedEntries returns each directory
			// before its files.
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

// sortedEntries returns the entries by name, so that each directory precedes its files.
func (t *archiveTree) sortedEntries() []entry {
	return slices.SortedFunc(maps.Values(t.entries), func(a, b entry) int {
		return strings.Compare(a.name, b.name)
	})
}

// fileTypes returns the types of all entries, by name.
func (t *archiveTree) fileTypes() map[string]fs.FileMode {
	types := make(map[string]fs.FileMode, len(t.entries))
	for name, e := range t.entries {
		types[name] = e.mode.Type()
	}

	return types
}

// readFile returns the content of a file. It follows symlinks within the archive. It returns fs.ErrNotExist if
// the name leads to a path in the archive that has no regular file.
func (t *archiveTree) readFile(name string) ([]byte, error) {
	links, err := t.readLinks()
	if err != nil {
		return nil, err
	}
	// Without the names of tools, each symlink must lead to a file of the archive.
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

// maxTargets is the largest size of the targets of all symlinks together, in bytes.
const maxTargets = 16 << 20

// readLinks returns the targets of all symlinks, by name. It keeps them for later calls. It returns an error if
// a target, or all targets together, are too big.
func (t *archiveTree) readLinks() (map[string]string, error) {
	if t.links != nil {
		return t.links, nil
	}

	links := make(map[string]string)
	total := uint64(0)
	for name, e := range t.entries {
		if e.mode.Type() != fs.ModeSymlink {
			continue
		}
		if e.zip.UncompressedSize64 > maxPath {
			return nil, fmt.Errorf("link %q: its target has %d bytes; the limit is %d",
				name, e.zip.UncompressedSize64, maxPath)
		}
		total += e.zip.UncompressedSize64
		if total > maxTargets {
			return nil, fmt.Errorf("the targets of links are too big: %d bytes or more together, at most %s",
				total, formatSize(maxTargets))
		}

		target, err := readZip(e.zip)
		if err != nil {
			return nil, fmt.Errorf("link %q: %w", name, err)
		}
		links[name] = string(target)
	}

	t.links = links
	return links, nil
}

// readZip returns the content of a file, which can have at most MaxYAML bytes.
func readZip(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readBounded(r)
}

const (
	maxPath     = 4096 // the size of the longest path in Linux, including its final NUL
	maxPathPart = 255  // the length of the longest file name in Linux
)

// checkPath returns an error for a name that leads out of the charm's directory, or that is not valid for a
// file.
func checkPath(name string) error {
	switch {
	case len(name) >= maxPath:
		return fmt.Errorf("its name has %d bytes; the limit is %d", len(name), maxPath-1)
	case !utf8.ValidString(name):
		return errors.New("its name is not UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("its name has a NUL byte")
	case strings.HasPrefix(name, "/"):
		return errors.New("its name is absolute")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return errors.New("its name leads outside of the charm")
	case name == "." || !fs.ValidPath(name):
		return errors.New("its name is empty or has empty parts")
	}

	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxPathPart {
			return fmt.Errorf("a part of its name has %d bytes; the limit is %d", len(part), maxPathPart)
		}
	}

	return nil
}

// describeType describes the type of a file that cannot be in a charm.
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

// budgetReader returns an error once the reads exceed left, unless the budget is unlimited.
type budgetReader struct {
	r         io.ReaderAt
	left      int64
	unlimited bool
}

// ReadAt reads at the offset. It returns an error if the budget is exceeded.
func (b *budgetReader) ReadAt(p []byte, off int64) (int, error) {
	if !b.unlimited {
		b.left -= int64(len(p))
		if b.left < 0 {
			return 0, fmt.Errorf("the list of files is too big: more than %s", formatSize(maxDirectory))
		}
	}
	return b.r.ReadAt(p, off)
}
