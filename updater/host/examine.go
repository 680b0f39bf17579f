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

// Examine returns a fault of the component on this server: installed files are gone, services do not run,
// or the health check fails. It is nil if there is none. runs is true if only the health check fails, which
// can pass soon.
func (h *Host) Examine(ctx context.Context, c release.Component) (ill error, runs bool) {
	if err := h.checkArtifact(ctx, c); err != nil {
		return err, false
	}
	if err := h.checkActive(ctx, c.Services); err != nil {
		return err, false
	}

	return h.probe(ctx, c), true
}

// checkArtifact returns an error that names the installed part of the component that is gone. It returns
// nil if that is unknown, or if the component's record names a different artifact.
func (h *Host) checkArtifact(ctx context.Context, c release.Component) error {
	was, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	if c.Artifact == nil || was.Phase == phaseChanging || was.Artifact != artifactID(c.Artifact) {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	switch a := c.Artifact; {
	case a.Archive != nil:
		return checkArchive(*a.Archive, was.Unpacked)
	case a.Deb != nil:
		return checkPackage(ctx, was.Package, was.PackageVersion)
	}

	return checkImage(ctx, c.Artifact.Image)
}

// checkArchive returns an error if files of an unpacked archive, or the link to them, are gone.
func checkArchive(f release.File, unpacked []string) error {
	if _, err := os.Stat(releaseDir(f)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, into which its archive was unpacked, is gone", releaseDir(f))
	}
	if why := lostEntries(releaseDir(f), unpacked); why != "" {
		return fmt.Errorf("%s, into which its archive was unpacked, %s", releaseDir(f), why)
	}
	if leads, err := os.Readlink(f.To); err != nil || leads != releaseDir(f) {
		return fmt.Errorf("%s is not a link to %s, into which its archive was unpacked", f.To, releaseDir(f))
	}

	return nil
}

// lostEntries describes which of the entries that held files a folder has lost; "" if none, or if it cannot
// be read.
func lostEntries(dir string, filled []string) string {
	all, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	if len(all) == 0 {
		return "is empty"
	}

	now := filledEntries(dir)
	for _, name := range filled {
		if !slices.Contains(now, name) {
			return fmt.Sprintf("has no file in %s any more", name)
		}
	}

	return ""
}

// maxFilledEntries is how many entries of a folder are looked at. Archives have few at their top.
const maxFilledEntries = 256

// filledEntries returns the first entries of a folder that are files, or folders with a file somewhere below.
func filledEntries(dir string) (names []string) {
	all, _ := os.ReadDir(dir) // who asks has looked if it can be read
	for _, e := range all[:min(len(all), maxFilledEntries)] {
		found := errors.New("found")
		err := filepath.WalkDir(filepath.Join(dir, e.Name()), func(_ string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return found // what cannot be read counts as there
			}
			return nil
		})
		if errors.Is(err, found) {
			names = append(names, e.Name())
		}
	}

	return names
}

// checkPackage asks dpkg whether the component's package is installed. A former version has not recorded
// which package it has installed.
func checkPackage(ctx context.Context, name, version string) error {
	if name == "" {
		return nil
	}

	out, err := newCommand(ctx, []string{"dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}\n", name}).Output()
	if _, said := errors.AsType[*exec.ExitError](err); said && ctx.Err() == nil {
		return fmt.Errorf("dpkg does not know its package %s", name)
	}
	if err != nil {
		return nil // nobody can tell
	}

	for line := range strings.Lines(string(out)) {
		state, found, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case state != "installed":
			err = fmt.Errorf("its package %s is not installed: dpkg says %s", name, state)
		case found != version:
			err = fmt.Errorf("its package %s is of version %s, not of %s", name, found, version)
		default:
			return nil
		}
	}

	return err
}

// readPackage returns the name and version of the package in a file; "" if that cannot be read, so that
// nobody asks dpkg for it later.
func readPackage(ctx context.Context, file string) (name, version string) {
	out, err := newCommand(ctx, []string{"dpkg-deb", "--show", "--showformat=${Package} ${Version}", file}).Output()
	if err != nil {
		slog.Warn("cannot read which package it is", "file", file, "error", err)
		return "", ""
	}
	name, version, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return name, version
}

// missingImage is how podman and docker say that they do not have an image. If they fail for another
// reason, nobody can tell.
const missingImage = `(?i)no such (image|object)|image not known`

func checkImage(ctx context.Context, image string) error {
	err := runEngine(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	if err == nil || !regexp.MustCompile(missingImage).MatchString(err.Error()) {
		return nil
	}
	return fmt.Errorf("its image %s is gone", image)
}
