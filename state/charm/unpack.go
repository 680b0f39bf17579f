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
	SHA256   string   // the archive's sum in hex, checked before anything is written; empty for no check
	Tools    []string // names of the hook tools
	ToolsDir string   // directory of the hook tools; a symlink with the name of a tool points to ToolsDir/NAME
	Scratch  bool     // if true, nothing is synced, since the directory need not survive a crash of the host
}

// ErrChecksum is returned if an archive does not have the expected checksum.
var ErrChecksum = errors.New("checksum differs")

// Unpack unpacks a charm archive of size bytes into dir. It creates dir, which must not exist. To replace a
// charm that is in use, the caller must unpack into another directory and rename it.
//
// It writes nothing outside dir. It keeps Unix permissions, but makes hooks and programs executable, files without
// permissions readable, and directories accessible to their owner. It syncs dir and everything in it before it
// returns. If it fails after it created dir, it removes dir. With opts.Scratch it does not sync, and does not add
// dir to errors.
func Unpack(r io.ReaderAt, size int64, dir string, opts UnpackOptions) (err error) {
	defer func() {
		if err != nil && !opts.Scratch {
			err = fmt.Errorf("cannot unpack charm into %q: %w", dir, err)
		}
	}()
	return unpack(r, size, dir, opts, defaultLimits())
}

// CheckArchive makes all checks of Unpack except those of the archive's checksum and of the contents of files. It
// unpacks nothing. tools are the names of the hook tools.
func CheckArchive(r io.ReaderAt, size int64, tools []string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use charm archive: %w", err)
		}
	}()

	_, _, err = checkArchive(r, size, tools, defaultLimits())
	return err
}

// ReadPacked reads the charm in the archive at path, after the checks of [CheckArchive]. Unless dir is empty, it
// also unpacks the archive into dir, as [Unpack] does with Scratch. If it cannot read the charm after that, dir
// stays. tools are the names of the hook tools.
func ReadPacked(path, dir string, tools []string) (*Charm, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := CheckArchive(file, info.Size(), tools); err != nil {
		return nil, err
	}
	if dir != "" {
		options := UnpackOptions{Tools: tools, Scratch: true}
		if err := Unpack(file, info.Size(), dir, options); err != nil {
			return nil, err
		}
	}

	return ReadArchive(file, info.Size())
}

// ReadPackedFile reads a file of at most MaxYAML bytes in the archive of a charm or bundle at path. It follows
// symlinks within the archive. It returns fs.ErrNotExist if the archive does not have the file.
func ReadPackedFile(path, name string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	t, err := openArchive(file, info.Size(), defaultLimits())
	if err != nil {
		return nil, err
	}
	return t.readFile(name)
}

// Verify returns ErrChecksum if the archive's SHA-256 sum in hex is not want.
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

// checkArchive reads an archive's tree and checks everything except the contents of its files. In the tree that
// it returns, programs are executable.
func checkArchive(r io.ReaderAt, size int64, tools []string, l limits) (*archiveTree, *linkResolver, error) {
	t, err := openArchive(r, size, l)
	if err != nil {
		return nil, nil, err
	}
	links, err := t.readLinks()
	if err != nil {
		return nil, nil, err
	}

	resolver := newLinkResolver(links, tools)
	if err := resolver.checkLinks(); err != nil {
		return nil, nil, err
	}
	if err := t.permitPrograms(resolver); err != nil {
		return nil, nil, err
	}

	return t, resolver, nil
}

// unpack checks an archive, creates dir and unpacks the archive into it. If unpacking fails, it removes dir.
func unpack(r io.ReaderAt, size int64, dir string, opts UnpackOptions, l limits) error {
	if opts.SHA256 != "" {
		if err := Verify(r, size, opts.SHA256); err != nil {
			return err
		}
	}

	t, resolver, err := checkArchive(r, size, opts.Tools, l)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := unpackInto(dir, t, resolver, opts); err != nil {
		// InFolder adds dir to an error with a relative path. With Scratch, dir is not added; see Unpack.
		if !opts.Scratch {
			err = osutil.InFolder(err, dir)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}

	return nil
}

// unpackInto creates all entries of the tree in dir, and then sets their permissions, each directory after
// its files. It syncs everything, unless opts.Scratch is set.
func unpackInto(dir string, t *archiveTree, resolver *linkResolver, opts UnpackOptions) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	u := &unpacker{root: root, resolver: resolver, toolsDir: opts.ToolsDir, limits: t.limits}
	entries := t.sortedEntries()
	// Many files are synced faster by one sync of the file system, below.
	u.syncEach = !opts.Scratch && len(entries) <= maxSyncedFiles
	for _, e := range entries {
		if err := u.createEntry(e); err != nil {
			return fmt.Errorf("file %q: %w", e.name, err)
		}
	}

	// A directory must be finished after its files, since its permissions may forbid writing.
	slices.Reverse(entries)
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

// maxSyncedFiles is how many files are synced separately. For more files it is faster to sync the whole file
// system. Syncing 100,000 files separately took more than a minute, and syncing the file system took a
// second.
const maxSyncedFiles = 200

// unpacker creates the files of an archive in a directory.
type unpacker struct {
	root     *os.Root
	syncEach bool // whether each file is synced separately
	resolver *linkResolver
	toolsDir string
	written  int64 // bytes written so far; the sizes in an archive's list cannot be trusted
	limits   limits
}

// createEntry creates a file, directory or symlink. A symlink with the name of a hook tool gets the agent's tool as
// its target. finishEntry sets the permissions.
func (u *unpacker) createEntry(e entry) error {
	switch e.mode.Type() {
	case fs.ModeDir:
		return u.root.Mkdir(e.name, 0o700)
	case fs.ModeSymlink:
		target := u.resolver.links[e.name]
		if u.resolver.isTool(e.name) {
			target = filepath.Join(u.toolsDir, path.Base(e.name))
		}
		return u.root.Symlink(target, e.name)
	}

	return u.writeFile(e)
}

// writeFile writes one file. It returns an error if the files written so far exceed the limit for all files.
func (u *unpacker) writeFile(e entry) (err error) {
	r, err := e.zip.Open()
	if err != nil {
		return err
	}
	defer r.Close()

	if e.mode&0o111 != 0 {
		// A child process would inherit the open file, and the program could not be executed.
		defer osutil.BlockForks()()
	}
	f, err := u.root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	// One byte more than the limit shows that the files exceed it.
	n, err := io.Copy(f, io.LimitReader(r, u.limits.unpacked-u.written+1))
	u.written += n
	if err != nil {
		return err
	}

	return u.limits.checkUnpacked(u.written)
}

// finishEntry sets the permissions of a file or directory, and syncs it if syncEach is true. It ignores symlinks.
func (u *unpacker) finishEntry(e entry) error {
	if e.mode.Type() == fs.ModeSymlink {
		return nil
	}

	perm := e.mode &^ fs.ModeType
	if e.mode.IsDir() {
		// Without these bits the agent could not replace or remove the charm.
		perm |= 0o700
	}
	f, err := u.root.Open(e.name)
	if err != nil {
		return err
	}
	defer f.Close()

	if err := f.Chmod(perm); err != nil {
		return err
	}
	if !u.syncEach {
		return nil
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

// maxDirectory is the largest size of an archive's list of files, in bytes. It is enough for MaxFiles with
// long names, but does not fill the memory of an agent.
const maxDirectory = 32 << 20

// limits are the limits of a charm. Functions take them as an argument, so that tests can pass smaller limits.
type limits struct {
	packed, unpacked int64
	files            int
}

// defaultLimits returns the limits of all charms that are not part of a test.
func defaultLimits() limits { return limits{packed: MaxPacked, unpacked: MaxUnpacked, files: MaxFiles} }

// checkPacked returns an error if an archive of size bytes is too big.
func (l limits) checkPacked(size int64) error {
	if size > l.packed {
		return fmt.Errorf("archive is too big: %s or more; the limit is %s", formatSize(size), formatSize(l.packed))
	}
	return nil
}

// checkUnpacked returns an error if files of size bytes together are too big.
func (l limits) checkUnpacked(size int64) error {
	if size > l.unpacked {
		// Callers stop once the limit is exceeded, so size can be less than the size of all files.
		return fmt.Errorf("files are too big: %s or more together; the limit is %s",
			formatSize(size), formatSize(l.unpacked))
	}
	return nil
}

// checkFiles returns an error if n files are too many.
func (l limits) checkFiles(n int) error {
	if n > l.files {
		return fmt.Errorf("too many files: %d or more; the limit is %d", n, l.files)
	}
	return nil
}

// formatSize formats a number of bytes without rounding, so that a size that exceeds a limit by one byte
// looks different from the limit.
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
