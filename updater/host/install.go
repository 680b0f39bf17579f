package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bijou/state/osutil"
	"bijou/updater/release"
)

// InstalledForm returns how the executable was installed: as a package if dpkg knows the file, and as a
// tarball otherwise. The form decides which asset of a release this server gets.
func InstalledForm(executable string) string {
	dpkg, err := exec.LookPath("dpkg-query")
	if err == nil && exec.Command(dpkg, "--search", executable).Run() == nil {
		return release.Deb
	}
	return release.Tarball
}

// Package is a downloaded release.
type Package struct {
	Form    string // release.Deb or release.Tarball
	File    string
	Version string // the version that the package must have
	Sums    string // the digest of the SHA256SUMS that lists the package
}

// InstallRelease replaces the executable with the one from a release. The release is a package, or a tarball
// with bijou and manifest.yaml. Running processes keep their program, but a package may restart them. A
// program that does not run on this host, or has a different version, is not installed.
func (h *Host) InstallRelease(ctx context.Context, p Package, executable string) error {
	ctx = h.withTimeout(ctx, release.Component{}) // the configured timeout for each command
	if p.Form == release.Deb {
		if err := h.tryDeb(ctx, p, executable); err != nil {
			return err
		}
		return h.installDeb(ctx, "neco", p.File)
	}

	return h.installTarball(ctx, p, executable)
}

// installTarball checks and tries the release. It then replaces the executable, and after that the manifest next
// to it. The manifest comes last, since it contains the version. A worker that is killed between the two
// replacements still has the previous version, and installs the release again.
func (h *Host) installTarball(ctx context.Context, p Package, executable string) error {
	draft := h.draftDir()
	defer os.RemoveAll(draft)
	// A call that was killed may have left a draft.
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}

	if err := Unpack(ctx, p.File, draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	if err := checkComplete(draft); err != nil {
		return err
	}
	if err := checkVersion(filepath.Join(draft, "manifest.yaml"), p.Version); err != nil {
		return err
	}
	if err := tryProgram(ctx, filepath.Join(draft, "bijou")); err != nil {
		return err
	}
	if err := h.keepOrigin(p, filepath.Join(draft, "bijou")); err != nil {
		return err
	}
	if err := installFile(filepath.Join(draft, "bijou"), executable, 0o755); err != nil {
		return err
	}

	return installFile(filepath.Join(draft, "manifest.yaml"),
		filepath.Join(filepath.Dir(executable), "manifest.yaml"), 0o644)
}

// draftDir returns the directory in which a release is unpacked and tried.
func (h *Host) draftDir() string { return filepath.Join(h.dir, "downloads", "release.draft") }

// checkComplete returns an error unless the directory has both files of a release, so that one file is never
// installed without the other. It also makes the program executable.
func checkComplete(dir string) error {
	for _, name := range []string{"bijou", "manifest.yaml"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("cannot install %s: the release does not contain it", name)
		}
	}
	// The program must be executable for its trial.
	return os.Chmod(filepath.Join(dir, "bijou"), 0o755)
}

// checkVersion returns an error if the manifest's version differs from that of the release. Otherwise the
// installed program would never have the version of the request, and would install the release again and
// again.
func checkVersion(manifest, version string) error {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return fmt.Errorf("cannot install the release: %w", err)
	}

	found, err := release.VersionIn(data)
	if err != nil {
		return fmt.Errorf("cannot install the release: %w", err)
	}
	if !release.Same(found, version) {
		return fmt.Errorf("cannot install the release: its manifest.yaml has version %q, not %s", found, version)
	}

	return nil
}

// installFile copies a file to its destination.
func installFile(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("cannot install %s: %w", filepath.Base(from), err)
	}
	if err := osutil.WriteFile(to, data, mode); err != nil {
		return fmt.Errorf("cannot install %s: %w", filepath.Base(from), err)
	}

	return nil
}

// RemoveOtherReleases removes the files in a directory that do not belong to the given version. A file belongs to
// the version if its name contains _VERSION_, as in neco_1.2_amd64.deb.
func RemoveOtherReleases(dir, version string) error {
	err := removeAllBut(dir, func(name string) bool { return strings.Contains(name, "_"+version+"_") })
	if err != nil {
		return fmt.Errorf("cannot remove old releases: %w", err)
	}

	return nil
}
