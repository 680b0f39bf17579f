package uniter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"bijou/hookenv"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
)

// deploy puts the charm into the unit's folder in place of what is there. It may
// be killed anywhere and run again: the folder holds the old charm or the new
// one, whole.
func deploy(ctx context.Context, st *state.State, url string, f Folder, fault func(point string)) error {
	var c state.Charm
	err := st.View(ctx, func(v *state.View) (err error) {
		c, err = v.Charm(url)
		return err
	})
	if err == nil {
		fault("before-unpack")
		err = errors.Join(f.putBack(), unpackBeside(ctx, st, c, f))
	}
	if err == nil {
		err = f.replaceCharm(fault)
	}
	if err != nil {
		return fmt.Errorf("cannot deploy charm %q: %w", url, err)
	}
	return nil
}

// unpackBeside downloads, verifies and unpacks the charm into charm.new.
func unpackBeside(ctx context.Context, st *state.State, c state.Charm, f Folder) error {
	var tools []string
	for _, t := range hookenv.Tools() {
		tools = append(tools, t.Name)
	}
	if err := os.RemoveAll(f.path("charm.new")); err != nil {
		return err
	}
	archive, err := download(ctx, st, c.SHA256, f)
	if err != nil {
		return err
	}
	defer archive.Close()
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	return charm.Unpack(archive, info.Size(), f.path("charm.new"), charm.UnpackOptions{
		SHA256: c.SHA256, Tools: tools, ToolsDir: f.tools(),
	})
}

// download fetches a blob into a file that has no name any more. The name is
// always the same, so that one of a deploy that was killed is taken over.
func download(ctx context.Context, st *state.State, sum string, f Folder) (*os.File, error) {
	blob, err := st.OpenBlob(ctx, sum)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	file, err := os.OpenFile(f.path("charm.zip"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(file.Name()), copyTo(file, blob)); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func copyTo(w io.Writer, r io.Reader) error {
	_, err := io.Copy(w, r)
	return err
}

// replaceCharm puts charm.new in the place of charm, with what the charm in charm
// has made itself. As long as it may be the one or the other, what both have
// brought counts as brought.
func (f Folder) replaceCharm(fault func(point string)) error {
	fresh, err := f.unpacked()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.Charm()); errors.Is(err, fs.ErrNotExist) {
		fault("before-swap")
		return errors.Join(f.note(fresh), f.swapCharm(fault))
	}
	old, err := f.brought()
	if err == nil {
		err = errors.Join(f.note(old, fresh), f.takeAlong(old))
	}
	if err != nil {
		return err
	}
	fault("before-swap")
	return errors.Join(f.swapCharm(fault), f.note(fresh))
}

// swapCharm puts charm.new in the place of charm.
func (f Folder) swapCharm(fault func(point string)) error {
	fresh, old := f.path("charm.new"), f.Charm()
	err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE)
	switch {
	case err == nil: // the old one is charm.new now
		fault("after-exchange")
		err = os.RemoveAll(fresh)
	case errors.Is(err, fs.ErrNotExist):
		err = os.Rename(fresh, old)
	default: // a file system that cannot exchange
		err = f.swapByTwo()
	}
	err = errors.Join(err, durable.Sync(string(f)))
	fault("after-swap")
	return err
}

// swapByTwo swaps by two renames. Killed between them, the next deploy puts the
// old charm back.
func (f Folder) swapByTwo() error {
	aside := f.path("charm.old")
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(f.Charm(), aside); err != nil {
		return err
	}
	if err := os.Rename(f.path("charm.new"), f.Charm()); err != nil {
		return err
	}
	return os.RemoveAll(aside)
}

// putBack puts back the charm that swapByTwo has put aside, if that was all it did.
func (f Folder) putBack() error {
	if _, err := os.Lstat(f.Charm()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(f.path("charm.old"), f.Charm()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
