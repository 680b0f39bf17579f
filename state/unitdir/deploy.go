package unitdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/osutil"
)

// PutCharm replaces the charm in the unit's directory f with the charm of this URL. It keeps the files that hooks
// have created in the charm's directory. tools are the names of the hook tools, since charms can contain
// symlinks to them. PutCharm calls fault at named points, where a test can kill the process.
//
// PutCharm can be killed at any point and run again. In between, the directory contains the whole old charm, if
// there was one, or the whole new charm. On a file system that cannot exchange two directories, it can also
// contain no charm until the next call.
func PutCharm(
	ctx context.Context,
	st *state.State,
	url string,
	f Folder,
	tools []string,
	fault func(point string),
) error {
	if err := f.putCharm(ctx, st, url, tools, fault); err != nil {
		return fmt.Errorf("cannot deploy charm %q: %w", url, err)
	}

	return nil
}

// putCharm does what PutCharm does, but does not wrap its errors.
func (f Folder) putCharm(
	ctx context.Context,
	st *state.State,
	url string,
	tools []string,
	fault func(point string),
) error {
	c, err := state.Read(ctx, st, func(v *state.View) (state.Charm, error) { return v.Charm(url) })
	if err != nil {
		return err
	}

	fault("before-unpack")
	if err := f.restoreOldCharm(); err != nil {
		return err
	}
	if err := unpackBeside(ctx, st, c, f, tools); err != nil {
		return err
	}

	return f.replaceCharm(fault)
}

// unpackBeside downloads the charm, and unpacks it into the directory charm.new, beside the charm in use.
func unpackBeside(ctx context.Context, st *state.State, c state.Charm, f Folder, tools []string) error {
	// A deployment that was killed can have left a part of a charm there.
	if err := os.RemoveAll(f.Path("charm.new")); err != nil {
		return err
	}
	archive, err := downloadCharm(ctx, st, c.SHA256, f)
	if err != nil {
		return err
	}
	defer archive.Close()

	info, err := archive.Stat()
	if err != nil {
		return err
	}

	return charm.Unpack(archive, info.Size(), f.Path("charm.new"), charm.UnpackOptions{
		SHA256:   c.SHA256,
		Tools:    tools,
		ToolsDir: f.ToolsPath(),
	})
}

// downloadCharm downloads a charm's archive to a file that has no name. It creates the file as charm.zip, and
// removes that name before the download. So even if many deployments are killed, at most one file remains.
func downloadCharm(ctx context.Context, st *state.State, sum string, f Folder) (*os.File, error) {
	blob, err := st.OpenBlob(ctx, sum)
	if err != nil {
		return nil, err
	}
	defer blob.Close()

	file, err := os.OpenFile(f.Path("charm.zip"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}

	if _, err := io.Copy(file, blob); err != nil {
		file.Close()
		return nil, err
	}

	return file, nil
}

// replaceCharm swaps charm.new with charm, and keeps the files that hooks have created in charm. Until the
// swap has succeeded, the list of the files that came with a charm contains the files of both charms. So the
// old charm's files are still in the list if the swap fails.
func (f Folder) replaceCharm(fault func(point string)) error {
	fresh, err := f.unpackedFiles()
	if err != nil {
		return err
	}

	_, err = os.Lstat(f.Charm())
	isFirstCharm := errors.Is(err, fs.ErrNotExist) // any other error recurs below
	if isFirstCharm {
		fault("before-swap")
		if err := f.writeCharmFileList(fresh); err != nil {
			return err
		}
		return f.swapCharm(fault)
	}

	old, err := f.readCharmFileList()
	if err != nil {
		return err
	}
	if err := f.writeCharmFileList(old, fresh); err != nil {
		return err
	}
	if err := f.preserveLocalFiles(old); err != nil {
		return err
	}

	fault("before-swap")
	if err := f.swapCharm(fault); err != nil {
		return err
	}
	return f.writeCharmFileList(fresh)
}

// swapCharm swaps charm.new with charm in one step, and removes the old charm. On a file system that cannot
// exchange two directories, it uses two renames. The swap is durable when swapCharm returns without an error. It
// calls fault at named points, as PutCharm does.
func (f Folder) swapCharm(fault func(point string)) error {
	if err := f.exchangeCharm(fault); err != nil {
		return err
	}
	if err := osutil.SyncDir(string(f)); err != nil {
		return err
	}

	fault("after-swap")
	return nil
}

// exchangeCharm does what swapCharm does, but the swap may not be durable yet if there was no old charm.
func (f Folder) exchangeCharm(fault func(point string)) error {
	fresh := f.Path("charm.new")
	err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, f.Charm(), unix.RENAME_EXCHANGE)
	if err == nil {
		// The old charm is now in charm.new.
		fault("after-exchange")
		return f.removeReplaced(fresh)
	}
	if errors.Is(err, fs.ErrNotExist) { // there is no old charm
		return os.Rename(fresh, f.Charm())
	}

	// Most likely the file system cannot exchange directories.
	return f.swapByRename()
}

// swapByRename replaces the charm's directory with charm.new by two renames. If the second rename fails, it
// puts the old charm back. If it is killed between the renames, the next deploy puts the old charm back with
// restoreOldCharm.
func (f Folder) swapByRename() error {
	aside := f.Path("charm.old")
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(f.Charm(), aside); err != nil {
		return err
	}
	if err := os.Rename(f.Path("charm.new"), f.Charm()); err != nil {
		return errors.Join(err, f.restoreOldCharm())
	}

	return f.removeReplaced(aside)
}

// removeReplaced syncs the swap and then removes the old charm. Without the sync, a crash could lose files
// that hooks have created, since their new names are not safely on disk yet.
func (f Folder) removeReplaced(old string) error {
	if err := osutil.SyncDir(string(f)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// restoreOldCharm puts charm.old back if swapByRename was killed while no charm was in place. If a charm is
// in place, it does nothing.
func (f Folder) restoreOldCharm() error {
	_, err := os.Lstat(f.Charm())
	isMissing := errors.Is(err, fs.ErrNotExist)
	if !isMissing {
		return err // nil if a charm is in place
	}

	err = os.Rename(f.Path("charm.old"), f.Charm())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no old charm
	}
	return err
}
