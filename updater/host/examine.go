package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bijou/updater/release"
)

// Examine returns a problem of the component on this server, or nil if there is none. A problem exists if
// checkArtifact returns an error, a service is not running, or the health check fails. runs is true if Examine finds
// nothing wrong before it calls probe. If probe then fails, the component may still become healthy soon.
func (h *Host) Examine(ctx context.Context, c release.Component) (problem error, runs bool) {
	if err := h.checkArtifact(ctx, c); err != nil {
		return err, false
	}
	if err := h.checkActive(ctx, c.Services); err != nil {
		return err, false
	}

	return h.probe(ctx, c), true
}

// checkArtifact returns an error if a part of the component's installed artifact is missing, or if the
// component's record cannot be read. It returns nil if nobody can tell whether a part is missing, if the record
// describes a different artifact, or if an update of the component is not complete.
func (h *Host) checkArtifact(ctx context.Context, c release.Component) error {
	if c.Artifact == nil {
		return nil
	}
	recorded, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	isInstalled := recorded.Phase != phaseChanging && recorded.Artifact == artifactID(c.Artifact)
	if !isInstalled {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	switch a := c.Artifact; {
	case a.Archive != nil:
		return checkArchive(*a.Archive, recorded.Unpacked)
	case a.Deb != nil:
		return checkPackage(ctx, recorded.Package, recorded.PackageVersion)
	}

	return checkImage(ctx, c.Artifact.Image)
}

// checkArchive returns an error if files of an unpacked archive are missing, or if f.To is not the symlink to
// them. unpacked are the entries that must contain a file, as in lostEntries.
func checkArchive(f release.File, unpacked []string) error {
	if _, err := os.Stat(releaseDir(f)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, into which its archive was unpacked, is gone", releaseDir(f))
	}
	if why := lostEntries(releaseDir(f), unpacked); why != "" {
		return fmt.Errorf("%s, into which its archive was unpacked, %s", releaseDir(f), why)
	}
	if target, err := os.Readlink(f.To); err != nil || target != releaseDir(f) {
		return fmt.Errorf("%s is not a symlink to %s, into which its archive was unpacked", f.To, releaseDir(f))
	}

	return nil
}

// lostEntries returns a description if the directory is empty, or if one of the entries no longer contains a
// file. Otherwise, or if the directory cannot be read, it returns "". entries are the result of an earlier
// filledEntries.
func lostEntries(dir string, entries []string) string {
	current, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	if len(current) == 0 {
		return "is empty"
	}

	filled := filledEntries(dir)
	for _, name := range entries {
		if !slices.Contains(filled, name) {
			return fmt.Sprintf("no longer has a file in %s", name)
		}
	}

	return ""
}

// maxFilledEntries is the maximum number of entries of a directory that are examined. Archives have few
// entries at the top level.
const maxFilledEntries = 256

// filledEntries returns those entries of a directory that are files, or directories that contain a file at any
// depth. It looks only at the first maxFilledEntries entries.
func filledEntries(dir string) (names []string) {
	// The error is ignored, since the entries that were read are enough.
	entries, _ := os.ReadDir(dir)
	for _, e := range entries[:min(len(entries), maxFilledEntries)] {
		// This error ends the walk at the first file.
		found := errors.New("found")
		err := filepath.WalkDir(filepath.Join(dir, e.Name()), func(_ string, e fs.DirEntry, err error) error {
			// A directory that cannot be read may contain a file, so it counts.
			if err != nil || !e.IsDir() {
				return found
			}
			return nil
		})
		if errors.Is(err, found) {
			names = append(names, e.Name())
		}
	}

	return names
}

// checkPackage returns an error if dpkg reports that the component's package is not installed, or has a
// different version. It returns nil if name is "", since earlier versions did not record which package they have
// installed.
func checkPackage(ctx context.Context, name, version string) error {
	if name == "" {
		return nil
	}

	query := []string{"dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}\n", name}
	out, err := newCommand(ctx, query).Output()
	if _, hasExited := errors.AsType[*exec.ExitError](err); hasExited && ctx.Err() == nil {
		return fmt.Errorf("its package %s is unknown to dpkg", name)
	}
	// If dpkg-query does not run, nothing is known about the package.
	if err != nil {
		return nil
	}

	// A package can be installed for several architectures. One correct installation is enough.
	var problem error
	for line := range strings.Lines(string(out)) {
		state, found, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case state != "installed":
			problem = fmt.Errorf("its package %s is not installed: dpkg says %s", name, state)
		case found != version:
			problem = fmt.Errorf("its package %s has version %s, not %s", name, found, version)
		default:
			return nil
		}
	}

	return problem
}

// readPackage returns the name and version of the package in a file. It returns "" if they cannot be read,
// so that checkPackage does not check the package later.
func readPackage(ctx context.Context, file string) (name, version string) {
	out, err := newCommand(ctx, []string{"dpkg-deb", "--show", "--showformat=${Package} ${Version}", file}).Output()
	if err != nil {
		slog.Warn("cannot read the name and version of a package", "file", file, "error", err)
		return "", ""
	}
	name, version, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return name, version
}

// missingImage matches the messages of podman and docker for a missing image. If they fail for a different
// reason, nothing is known about the image.
const missingImage = `(?i)no such (image|object)|image not known`

// checkImage returns an error if podman or docker reports that this host does not have the image. It returns nil
// after any other failure, which does not show that the image is gone.
func checkImage(ctx context.Context, image string) error {
	err := runEngine(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	if err == nil || !regexp.MustCompile(missingImage).MatchString(err.Error()) {
		return nil
	}
	return fmt.Errorf("its image %s is gone", image)
}
