package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bijou/state/durable"
	"bijou/updater/release"
)

// An archive for /usr/local/etcd is unpacked into
// /usr/local/etcd.releases/<sum>; /usr/local/etcd is a link to that, which is
// replaced as a whole.

func releasesDir(f release.File) string { return f.To + ".releases" }

func releaseDir(f release.File) string { return filepath.Join(releasesDir(f), f.SHA256[:16]) }

func unpackBeside(ctx context.Context, archive string, f release.File) (err error) {
	into := releaseDir(f)
	if _, err := os.Stat(into); err == nil {
		return nil
	}
	if err := durable.MkdirAll(releasesDir(f), 0o755); err != nil {
		return fmt.Errorf("cannot unpack %s: %w", f.URL, err)
	}
	draft := into + ".draft"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack %s: %w", f.URL, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot unpack %s: %w", f.URL, err), os.RemoveAll(draft))
		}
	}()
	if err := Unpack(ctx, archive, draft); err != nil {
		return err
	}
	if err := durable.SyncAll(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, into); err != nil {
		return err
	}
	return durable.Sync(releasesDir(f))
}

// switchTo replaces the link at once, and removes all releases but this one and the one
// before.
func switchTo(f release.File) error {
	if err := setAside(f); err != nil {
		return fmt.Errorf("cannot switch %s: %w", f.To, err)
	}
	before, _ := os.Readlink(f.To)
	if before == releaseDir(f) {
		return nil
	}
	if err := replaceLink(f); err != nil {
		return fmt.Errorf("cannot switch %s: %w", f.To, err)
	}
	return removeOldReleases(f, before)
}

// replaceLink replaces a link, or exchanges a folder that was installed by hand, which is
// kept among the releases.
func replaceLink(f release.File) error {
	link := draftLink(f)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(releaseDir(f), link); err != nil {
		return err
	}
	info, err := os.Lstat(f.To)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		if err := os.Rename(link, f.To); err != nil {
			return err
		}
		return durable.Sync(filepath.Dir(f.To))
	}
	if err := unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, f.To, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	if err := durable.Sync(filepath.Dir(f.To)); err != nil {
		return err
	}
	return setAside(f)
}

func draftLink(f release.File) string { return releasesDir(f) + "/link" }

// setAside keeps the folder that a link has replaced, only the last if there were
// several. It may have been killed before it could, and is called again then.
func setAside(f release.File) error {
	info, err := os.Lstat(draftLink(f))
	if err != nil || !info.IsDir() {
		return nil
	}
	kept := filepath.Join(releasesDir(f), "by-hand")
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	return os.Rename(draftLink(f), kept)
}

func removeOldReleases(f release.File, before string) error {
	all, err := os.ReadDir(releasesDir(f))
	if err != nil {
		return err
	}
	for _, e := range all {
		path := filepath.Join(releasesDir(f), e.Name())
		if path == releaseDir(f) || path == before || e.Name() == "by-hand" {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
