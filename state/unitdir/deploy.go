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

// PutCharm puts a charm into the unit's directory, and keeps the files that hooks have made beside the old
// charm's. tools names the hook tools, which charms may hold as links. It calls fault at named points. It
// may be killed at any point and run again: the directory always holds the old charm or the new one, whole.
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

// putCharm puts the charm of that URL in place of the unit's charm. It may be repeated after it was killed at
// any point.
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

// downloadCharm removes the file's name at once, and always uses the same, so that a deploy
// that was killed leaves at most one.
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

// replaceCharm swaps charm.new with charm, and keeps the files that hooks have made in charm. Until the
// swap is certain, the list of files that came with a charm names those of both. If the swap fails, the
// list still names the old charm's.
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
// exchange two directories it renames one after the other.
func (f Folder) swapCharm(fault func(point string)) error {
	fresh := f.Path("charm.new")
	old := f.Charm()
	err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE)
	switch {
	case err == nil: // the old one is charm.new now
		fault("after-exchange")
		err = f.removeReplaced(fresh)
	case errors.Is(err, fs.ErrNotExist):
		err = os.Rename(fresh, old)
	default: // a file system that cannot exchange
		err = f.swapByRename()
	}
	if err != nil {
		return err
	}
	if err := osutil.SyncDir(string(f)); err != nil {
		return err
	}

	fault("after-swap")
	return nil
}

// swapByRename replaces the charm's directory by charm.new with two renames. If the second fails it puts the
// old charm back. If it is killed between them, the next deploy does so (restoreOldCharm).
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

// removeReplaced removes the old charm once the swap is synced. Before that the old charm's directory could
// hold the only name of a file that a hook has made.
func (f Folder) removeReplaced(old string) error {
	if err := osutil.SyncDir(string(f)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// restoreOldCharm puts charm.old back if a swap was cut off when no charm was in place.
func (f Folder) restoreOldCharm() error {
	if _, err := os.Lstat(f.Charm()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(f.Path("charm.old"), f.Charm()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}
