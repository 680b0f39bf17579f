package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bijou/state/backoff"
	"bijou/updater/activity"
)

// installDeb installs the package in the file. name is the component, for errors. installDeb runs dpkg in a
// separate unit, since a package script may restart the worker, and that must not kill dpkg. It first
// finishes an installation that a power cut has interrupted.
//
// If a package cannot be installed, dpkg restores the previous package, which may also restart the worker.
// For this reason, the first call in a process returns the failure of the same installation by the previous
// process, if there was one.
func (h *Host) installDeb(ctx context.Context, name, file string) error {
	// Only the first call in this process resumes an earlier installation. The shell ignores a failure of the
	// first dpkg.
	d := Detached{
		Title:   "neco-worker installs " + file,
		Resume:  !h.installBegun.Swap(true),
		Command: []string{"/bin/sh", "-c", `dpkg --configure -a --force-confold; exec dpkg --install --force-confold "$1"`, "sh", file},
	}

	err := h.runDpkg(ctx, d)
	if err != nil {
		return fmt.Errorf("cannot install the package of %s: %w", name, err)
	}

	return nil
}

// tryDeb tries the program with which the package will replace the executable, and checks the version of the
// manifest next to it, if there is one. If the package contains no such program, there is nothing to try. Unless
// tryDeb returns an error, it records the release as the origin of the program. It installs nothing.
func (h *Host) tryDeb(ctx context.Context, p Package, executable string) error {
	draft := h.draftDir()
	defer os.RemoveAll(draft)
	// A call that was killed may have left a draft.
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	if err := runCommand(ctx, []string{"dpkg-deb", "--extract", p.File, draft}); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}

	program := filepath.Join(draft, executable)
	if info, err := os.Lstat(program); err != nil || !info.Mode().IsRegular() {
		return h.keepOrigin(p, "") // "" stands for a package without the program
	}

	// Without this file, the program uses its built-in manifest.
	manifest := filepath.Join(filepath.Dir(program), "manifest.yaml")
	if _, err := os.Lstat(manifest); err == nil {
		if err := checkVersion(manifest, p.Version); err != nil {
			return err
		}
	}

	if err := tryProgram(ctx, program); err != nil {
		return err
	}

	return h.keepOrigin(p, program)
}

// FinishInstallation finishes an installation that a power cut has interrupted. It does nothing if the host
// has no dpkg, or if no installation was interrupted. With systemd, it waits for a dpkg that a previous worker has
// started for this, and uses that one's result, instead of starting another.
//
// If power was lost while dpkg was replacing neco's own files, dpkg needs the package again. own is the
// path of this program's package, and is used if it exists.
func (h *Host) FinishInstallation(ctx context.Context, own string) error {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		return nil
	}
	// The audit prints nothing if all installations are complete. If it fails, the commands below do no harm.
	if out, err := exec.CommandContext(ctx, dpkg, "--audit").Output(); err == nil && len(out) == 0 {
		return nil
	}

	d := Detached{
		Title: "neco-worker finishes installations",
		// dpkg can restart this worker. If each worker started dpkg again, that would never end.
		Join:    true,
		Command: []string{"dpkg", "--configure", "-a", "--force-confold"},
	}

	if err := h.runDpkg(ctx, d); err != nil {
		return fmt.Errorf("cannot finish a previous installation: %w", err)
	}
	// Only neco's own package is at hand here.
	if _, err := os.Stat(own); err != nil || !needsReinstall(ctx, "neco") {
		return nil
	}

	return h.installDeb(ctx, "neco", own)
}

// needsReinstall reports whether dpkg requires that the package is installed again.
func needsReinstall(ctx context.Context, name string) bool {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${db:Status-Eflag}", name).Output()
	return err == nil && string(out) == "reinstreq"
}

// runDpkg runs a command that is dpkg or calls dpkg, one command at a time. It sets the unit's name, the log and
// the environment of d. If another process on this server uses dpkg, such as apt, runDpkg retries until that
// process has ended, or ctx is done.
func (h *Host) runDpkg(ctx context.Context, d Detached) error {
	select {
	case h.dpkgLock <- struct{}{}:
		defer func() { <-h.dpkgLock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	d.Name = "neco-install"
	d.Log = filepath.Join(h.dir, "install.log")
	d.Env = []string{
		"DEBIAN_FRONTEND=noninteractive",
		"LC_ALL=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	doing := activity.Begin(ctx, "%s", strings.TrimPrefix(d.Title, "neco-worker "))
	defer doing.End()

	for {
		err := retryHung(ctx, func(ctx context.Context) error { return h.services.RunDetached(ctx, d) })
		if err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), dpkgLocked) {
			return err
		}

		slog.Warn("waits until nobody else uses dpkg", "error", err)
		doing.Say("waits until nobody else uses dpkg: %v", err)
		if backoff.Sleep(ctx, dpkgRetryInterval) != nil {
			// ctx is done, and dpkg's own error says why nothing was installed.
			return err
		}
	}
}

const (
	// dpkgLocked is part of dpkg's message if another dpkg is running.
	dpkgLocked = " lock was locked by another process"
	// dpkgRetryInterval is the delay between two tries if another dpkg is running.
	dpkgRetryInterval = 5 * time.Second
)

// isUnreadable reports whether err shows that a program was killed because a page of its own file could not
// be read.
func isUnreadable(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGBUS
}
