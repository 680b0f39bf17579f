package charm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"bijou/state/osutil"
)

// UnpackOptions are options of Unpack.
type UnpackOptions struct {
	SHA256   string   // hex; if set, an archive with another sum is refused before anything is written
	Tools    []string // names of the hook tools
	ToolsDir string   // where links named like a hook tool point to: ToolsDir/NAME
	Scratch  bool     // it need not survive a crash of the machine: nothing is synced
}

// ErrChecksum is returned if an archive is not the one that was asked for.
var ErrChecksum = errors.New("checksum differs")

// Unpack unpacks a charm archive of size bytes into dir, which it makes and which must not exist. To
// replace a charm that is in use, unpack beside it and rename.
//
// It writes nothing outside dir. It keeps permissions, but makes hooks and programs executable, files
// without permissions readable, and directories open to their owner. Everything is synced when it returns.
// After an error dir is removed. With opts.Scratch nothing is synced, and errors do not name dir.
func Unpack(r io.ReaderAt, size int64, dir string, opts UnpackOptions) (err error) {
	defer func() {
		if err != nil && !opts.Scratch {
			err = fmt.Errorf("cannot unpack charm into %q: %w", dir, err)
		}
	}()
	return unpack(r, size, dir, opts, defaultLimits())
}

// CheckArchive returns the error that Unpack would, as far as can be found without
// unpacking. Tools are the names of the hook tools.
func CheckArchive(r io.ReaderAt, size int64, tools []string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use charm archive: %w", err)
		}
	}()

	_, _, err = checkArchive(r, size, tools, defaultLimits())
	return err
}

// Verify returns ErrChecksum if the archive's sha256 (hex) is not the wanted one.
func Verify(r io.ReaderAt, size int64, want string) error {
	got, _, err := osutil.DigestReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return fmt.Errorf("cannot read archive: %w", err)
	}
	if got != want {
		return fmt.Errorf("archive has sha256 %s, want %s: %w", got, want, ErrChecksum)
	}

	return nil
}

// checkArchive checks everything in an archive except the contents of its files.
func checkArchive(r io.ReaderAt, size int64, tools []string, l limits) (*archiveTree, *linkResolver, error) {
	t, err := openArchive(r, size, l)
	if err != nil {
		return nil, nil, err
	}
	links, err := t.readLinks()
	if err != nil {
		return nil, nil, err
	}

	res := newLinkResolver(links, tools)
	if err := res.checkLinks(); err != nil {
		return nil, nil, err
	}

	return t, res, t.permitPrograms(res)
}

// unpack checks an archive, and unpacks it into a new directory, which it removes if it fails.
func unpack(r io.ReaderAt, size int64, dir string, opts UnpackOptions, l limits) error {
	if opts.SHA256 != "" {
		if err := Verify(r, size, opts.SHA256); err != nil {
			return err
		}
	}

	t, res, err := checkArchive(r, size, opts.Tools, l)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := unpackInto(dir, t, res, opts); err != nil {
		if !opts.Scratch {
			err = osutil.InFolder(err, dir)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}

	return nil
}

// unpackInto creates all entries of the tree in dir, and then sets the modes of directories, from the inner
// to the outer ones.
func unpackInto(dir string, t *archiveTree, res *linkResolver, opts UnpackOptions) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	u := &unpacker{root: root, links: res, toolsDir: opts.ToolsDir, limits: t.limits}
	entries := t.sortedEntries()
	u.syncEach = !opts.Scratch && len(entries) <= maxSyncedFiles
	for _, e := range entries {
		if err := u.createEntry(e); err != nil {
			return fmt.Errorf("file %q: %w", e.name, err)
		}
	}

	slices.Reverse(entries) // a folder is finished after what is in it
	for _, e := range append(entries, entry{name: ".", mode: fs.ModeDir | 0o755}) {
		if err := u.finishEntry(e); err != nil {
			return fmt.Errorf("file %q: %w", e.name, err)
		}
	}

	if opts.Scratch || u.syncEach {
		return nil
	}
	if err := osutil.SyncFileSystem(dir); err != nil {
		return fmt.Errorf("cannot sync: %w", err)
	}

	return nil
}

// maxSyncedFiles is how many files are synced one by one. More of them take longer than to sync the
// whole file system: 100,000 took over a minute, all at once take a second.
const maxSyncedFiles = 200

type unpacker struct {
	root     *os.Root
	syncEach bool // every file is synced by itself
	links    *linkResolver
	toolsDir string
	written  int64 // bytes of all files so far: what an archive says of itself does not count
	limits   limits
}

// createEntry creates a file or directory. finishEntry sets its permissions.
func (u *unpacker) createEntry(e entry) error {
	switch e.mode.Type() {
	case fs.ModeDir:
		return u.root.Mkdir(e.name, 0o700)
	case fs.ModeSymlink:
		target := u.links.links[e.name]
		if u.links.isTool(e.name) {
			target = filepath.Join(u.toolsDir, path.Base(e.name))
		}
		return u.root.Symlink(target, e.name)
	}

	return u.writeFile(e)
}

// writeFile writes one file, and counts its bytes against the limit.
func (u *unpacker) writeFile(e entry) (err error) {
	r, err := e.zip.Open()
	if err != nil {
		return err
	}
	defer r.Close()

	if e.mode&0o111 != 0 {
		defer osutil.BlockForks()()
	}
	f, err := u.root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	n, err := io.Copy(f, io.LimitReader(r, u.limits.unpacked-u.written+1))
	u.written += n
	if err != nil {
		return err
	}

	return u.limits.checkUnpacked(u.written)
}

// finishEntry sets a file's permissions, and syncs the file if that is wanted.
func (u *unpacker) finishEntry(e entry) error {
	perm := e.mode &^ fs.ModeType
	if e.mode.Type() == fs.ModeSymlink {
		return nil
	}

	if e.mode.IsDir() {
		perm |= 0o700 // so that the charm can be replaced and removed
	}
	f, err := u.root.Open(e.name)
	if err != nil {
		return err
	}
	defer f.Close()

	if err := f.Chmod(perm); err != nil || !u.syncEach {
		return err
	}

	return f.Sync()
}

// The limits of a charm.
const (
	MaxPacked   = 64 << 20 // bytes of an archive
	MaxUnpacked = 1 << 30  // bytes of all files of a charm together
	MaxFiles    = 100_000  // files, links and directories of a charm
	MaxYAML     = 1 << 20  // bytes of metadata.yaml, config.yaml and the like
)

// maxDirectory bounds what is read of an archive's list of files: enough for
// MaxFiles with long names, too little to fill the memory of an agent.
const maxDirectory = 32 << 20

// limits are parameters so that tests can pass smaller ones.
type limits struct {
	packed, unpacked int64
	files            int
}

func defaultLimits() limits { return limits{packed: MaxPacked, unpacked: MaxUnpacked, files: MaxFiles} }

func (l limits) checkPacked(size int64) error {
	if size > l.packed {
		return fmt.Errorf("archive is too big: %s or more, at most %s", formatSize(size), formatSize(l.packed))
	}
	return nil
}

func (l limits) checkUnpacked(size int64) error {
	if size > l.unpacked {
		return fmt.Errorf("files are too big: %s or more together, at most %s",
			formatSize(size), formatSize(l.unpacked))
	}
	return nil
}

func (l limits) checkFiles(n int) error {
	if n > l.files {
		return fmt.Errorf("too many files: %d or more, at most %d", n, l.files)
	}
	return nil
}

// formatSize formats a number of bytes exactly, so that a limit differs from a size that exceeds it by one.
func formatSize(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}

	return fmt.Sprintf("%d bytes", n)
}
