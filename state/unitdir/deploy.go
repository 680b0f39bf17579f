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

// PutCharm replaces the charm in the unit's directory, and keeps the files that hooks have created in the
// charm's directory. tools has the names of the hook tools, since charms can contain symlinks to them. Tests
// use fault to interrupt it at named points.
//
// PutCharm can be killed at any point and run again. The directory always has either the whole old charm or
// the whole new one.
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

// putCharm does what PutCharm does.
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

// downloadCharm downloads a charm's archive to an unlinked file. It always creates the file under the same
// name and then removes the name, so that killed deploys leave at most one file.
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
// swap has succeeded, the list of files that came with a charm has the files of both charms. So the old
// charm's files are still in the list if the swap fails.
func (f Folder) replaceCharm(fault func(point string)) error {
	fresh, err := f.unpackedFiles()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.Charm()); errors.Is(err, fs.ErrNotExist) {
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

// swapCharm swaps charm.new with charm in one step, and removes the old charm. On file systems that cannot
// exchange two directories, it uses two renames.
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

// exchangeCharm does what swapCharm does, but does not sync the swap.
func (f Folder) exchangeCharm(fault func(point string)) error {
	fresh := f.Path("charm.new")
	err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, f.Charm(), unix.RENAME_EXCHANGE)
	if err == nil {
		// The old charm is now in charm.new.
		fault("after-exchange")
		return f.removeReplaced(fresh)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(fresh, f.Charm())
	}

	// The file system cannot exchange directories.
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

// restoreOldCharm puts charm.old back if a swap was interrupted while no charm was in place.
func (f Folder) restoreOldCharm() error {
	if _, err := os.Lstat(f.Charm()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	// There is no charm.old before the first deployment.
	err := os.Rename(f.Path("charm.old"), f.Charm())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
