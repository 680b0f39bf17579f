package host

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bijou/state/osutil"
	"bijou/updater/release"
)

// An archive for /usr/local/etcd is unpacked into /usr/local/etcd.releases/<sum>. /usr/local/etcd is a
// symlink to that directory, which is replaced atomically.

// releasesDir returns the directory with all unpacked releases of the archive.
func releasesDir(f release.File) string { return f.To + ".releases" }

// releaseDir returns the directory into which this release of the archive is unpacked.
func releaseDir(f release.File) string { return filepath.Join(releasesDir(f), f.SHA256[:16]) }

// unpackBeside unpacks the archive next to other releases of the same archive. If an earlier call has
// unpacked this release already, unpackBeside keeps its directory, unless the directory is empty or one of the
// entries no longer contains a file. entries is nil if the entries with files are unknown.
func unpackBeside(ctx context.Context, archive string, f release.File, entries []string) error {
	into := releaseDir(f)
	if _, err := os.Stat(into); err == nil && lostEntries(into, entries) == "" {
		// The process that renamed the directory may have been killed before it synced the parent directory.
		return osutil.SyncDir(releasesDir(f))
	}

	draft := into + ".draft"
	if err := unpackAs(ctx, archive, draft, into); err != nil {
		return errors.Join(fmt.Errorf("cannot unpack %s: %w", f, err), os.RemoveAll(draft))
	}

	return osutil.SyncDir(releasesDir(f))
}

// unpackAs unpacks the archive into the directory draft, and renames draft to into once draft is complete and
// synced. It replaces an existing directory atomically.
func unpackAs(ctx context.Context, archive, draft, into string) error {
	if err := osutil.MkdirAll(filepath.Dir(into), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	if err := Unpack(ctx, archive, draft); err != nil {
		return err
	}
	if err := osutil.SyncAll(draft); err != nil {
		return err
	}

	if _, err := os.Lstat(into); err != nil {
		return os.Rename(draft, into)
	}
	// A rename cannot replace a directory that is not empty. After the exchange, draft is the previous one.
	if err := unix.Renameat2(unix.AT_FDCWD, draft, unix.AT_FDCWD, into, unix.RENAME_EXCHANGE); err != nil {
		return err
	}

	return os.RemoveAll(draft)
}

// switchTo points the symlink f.To at the release. It then removes all other releases, except the previous one.
// If the symlink points at the release already, switchTo removes no releases.
func switchTo(f release.File) error {
	// Finish a switch that was interrupted after it replaced a directory, which is still at draftLink.
	if err := setAside(f); err != nil {
		return fmt.Errorf("cannot switch %s: %w", f.To, err)
	}

	previous, _ := os.Readlink(f.To)
	if previous == releaseDir(f) {
		// The process that replaced the symlink may have been killed before it synced the directory.
		err := osutil.SyncDir(filepath.Dir(f.To))
		if err != nil {
			return fmt.Errorf("cannot switch %s: %w", f.To, err)
		}

		return nil
	}

	if err := replaceLink(f); err != nil {
		return fmt.Errorf("cannot switch %s: %w", f.To, err)
	}

	return removeOldReleases(f, previous)
}

// replaceLink points the symlink f.To at the release. If there is a directory in place of the symlink, which
// somebody has installed by hand, replaceLink keeps that directory in releasesDir.
func replaceLink(f release.File) error {
	draft := draftLink(f)
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(releaseDir(f), draft); err != nil {
		return err
	}

	// A rename can replace a symlink, but not a directory. The two must exchange their places.
	var flags uint
	if info, err := os.Lstat(f.To); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		flags = unix.RENAME_EXCHANGE
	}
	if err := unix.Renameat2(unix.AT_FDCWD, draft, unix.AT_FDCWD, f.To, flags); err != nil {
		return err
	}
	if err := osutil.SyncDir(filepath.Dir(f.To)); err != nil {
		return err
	}

	return setAside(f)
}

// draftLink returns the path of the new symlink before it replaces the current one.
func draftLink(f release.File) string { return releasesDir(f) + "/link" }

// setAside moves the directory that the new symlink has replaced to by-hand in releasesDir, and removes the
// directory that was kept there before. It does nothing if the symlink has not replaced a directory. It can be
// repeated after an interruption.
func setAside(f release.File) error {
	// There is a directory at draftLink only if the new symlink has changed places with it.
	info, err := os.Lstat(draftLink(f))
	if err != nil || !info.IsDir() {
		return nil
	}

	kept := filepath.Join(releasesDir(f), "by-hand")
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	if err := os.Rename(draftLink(f), kept); err != nil {
		return err
	}

	return osutil.SyncDir(releasesDir(f))
}

// removeOldReleases removes all releases except this one, the one at the path previous, and a directory that
// was installed by hand.
func removeOldReleases(f release.File, previous string) error {
	return removeAllBut(releasesDir(f), func(name string) bool {
		path := filepath.Join(releasesDir(f), name)
		return path == releaseDir(f) || path == previous || name == "by-hand"
	})
}

// removeAllBut removes all entries of a directory except those for which keeps returns true. It does nothing
// if the directory does not exist. After an error it continues with the next entry.
func removeAllBut(dir string, keeps func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	// After any other error, entries has those that could be read.
	for _, e := range entries {
		if !keeps(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}

	return err
}

// Unpack unpacks a tar archive, gzip-compressed or not, into a new directory. It returns an error if a symlink
// leads out of the archive. After an error, the new directory can remain, without some of the files.
func Unpack(ctx context.Context, archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()

	r, err := decompress(f)
	if err != nil {
		return err
	}
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}

	return osutil.Untar(ctx, into, r, osutil.AnyWriter)
}

// decompress returns a reader of the content of f, which may be gzip-compressed.
func decompress(f io.Reader) (io.Reader, error) {
	r := bufio.NewReader(f)
	if magic, err := r.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		return gzip.NewReader(r)
	}
	return r, nil
}
