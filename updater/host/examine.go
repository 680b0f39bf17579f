package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
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
		return checkArchive(*a.Archive)
	case a.Deb != nil:
		return checkPackage(ctx, was.Package, was.PackageVersion)
	}

	return checkImage(ctx, c.Artifact.Image)
}

func checkArchive(f release.File) error {
	if _, err := os.Stat(releaseDir(f)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, into which its archive was unpacked, is gone", releaseDir(f))
	}
	if leads, err := os.Readlink(f.To); err != nil || leads != releaseDir(f) {
		return fmt.Errorf("%s is not a link to %s, into which its archive was unpacked", f.To, releaseDir(f))
	}

	return nil
}

// checkPackage asks dpkg. A former version has not noted which package it has installed.
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
