package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"bijou/updater/release"
)

// Form is how the executable came to this server: as a package if dpkg knows the
// file, else as a tarball. It says which of a release's assets is for this server.
func Form(executable string) string {
	dpkg, err := exec.LookPath("dpkg-query")
	if err == nil && exec.Command(dpkg, "--search", executable).Run() == nil {
		return release.Deb
	}
	return release.Tarball
}

// InstallRelease puts a release in place of the executable: a package, or a
// tarball that holds bijou and manifest.yaml. Processes that run go on with what
// they were started from; a package may restart them.
func (h *Host) InstallRelease(ctx context.Context, form, file, executable string) error {
	if form == release.Deb {
		return h.installDeb(ctx, "neco", file)
	}
	return h.installTarball(ctx, file, executable)
}

// installTarball replaces executable and manifest. The manifest says which version
// it is and comes last: whoever is killed in between installs again.
func (h *Host) installTarball(ctx context.Context, file, executable string) error {
	draft := filepath.Join(h.dir, "downloads", "release.draft")
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	defer os.RemoveAll(draft)
	if err := Unpack(ctx, file, draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	dir := filepath.Dir(executable)
	for _, f := range []struct {
		name, to string
		mode     fs.FileMode
	}{{"bijou", executable, 0o755}, {"manifest.yaml", filepath.Join(dir, "manifest.yaml"), 0o644}} {
		if err := put(filepath.Join(draft, f.name), f.to, f.mode); err != nil {
			return fmt.Errorf("cannot install %s: %w", f.name, err)
		}
	}
	return nil
}

// put copies a file beside its place, to the disk, and then into it.
func put(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the release does not hold it")
	}
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock() // a child that was forked meanwhile would hold it open for writing
	defer syscall.ForkLock.RUnlock()
	return renameio.WriteFile(to, data, mode)
}

// Sweep removes the files of a folder that are not of the version.
func Sweep(dir, version string) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove old releases: %w", err)
	}
	for _, e := range all {
		if strings.Contains(e.Name(), "_"+version+"_") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("cannot remove old releases: %w", err)
		}
	}
	return nil
}
