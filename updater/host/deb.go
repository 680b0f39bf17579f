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

// installDeb installs a package. It does so in a unit of its own, so that a package script that restarts
// the worker does not kill its own installer. It first finishes an installation that a loss of power has
// interrupted.
//
// If a package cannot be installed, dpkg goes back to the former one, and that can restart the worker as
// well. So the first installation of a process takes the result of the one that its predecessor began.
func (h *Host) installDeb(ctx context.Context, name, file string) error {
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

// tryDeb tries the program that the package will put in place of the executable, if it
// holds one, and checks the manifest beside it.
func (h *Host) tryDeb(ctx context.Context, p Package, executable string) error {
	draft := h.draftDir()
	defer os.RemoveAll(draft)
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	if err := runCommand(ctx, []string{"dpkg-deb", "--extract", p.File, draft}); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}

	program := filepath.Join(draft, executable)
	if info, err := os.Lstat(program); err != nil || !info.Mode().IsRegular() {
		return h.keepOrigin(p, "")
	}

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

// FinishInstallation finishes an installation that a loss of power has interrupted. It does nothing if
// there is no dpkg, or nothing to finish. It waits for an installation that still runs. That can be the one
// that the previous worker began and that ended that worker. FinishInstallation takes its result then,
// since the two would otherwise go on for ever.
//
// If power was lost while dpkg replaced neco's own files, dpkg needs them again. They come from own, the
// package of this program, if that file exists.
func (h *Host) FinishInstallation(ctx context.Context, own string) error {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, dpkg, "--audit").Output(); err == nil && len(out) == 0 {
		return nil
	}

	d := Detached{
		Title:   "neco-worker finishes installations",
		Join:    true,
		Command: []string{"dpkg", "--configure", "-a", "--force-confold"},
	}

	if err := h.runDpkg(ctx, d); err != nil {
		return fmt.Errorf("cannot finish an installation of before: %w", err)
	}
	if _, err := os.Stat(own); err != nil || !needsReinstall(ctx, "neco") {
		return nil
	}

	return h.installDeb(ctx, "neco", own)
}

func needsReinstall(ctx context.Context, name string) bool {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${db:Status-Eflag}", name).Output()
	return err == nil && string(out) == "reinstreq"
}

// runDpkg runs one command at a time that is dpkg or calls it. While somebody else, for example apt, uses
// dpkg on this server, it tries again.
func (h *Host) runDpkg(ctx context.Context, d Detached) error {
	select {
	case h.dpkgLock <- struct{}{}:
		defer func() { <-h.dpkgLock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	d.Name = "neco-install"
	d.Log = filepath.Join(h.dir, "install.log")
	d.Env = []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	doing := activity.Begin(ctx, "%s", strings.TrimPrefix(d.Title, "neco-worker "))
	defer doing.End()

	for {
		err := retryHung(ctx, func(ctx context.Context) error { return h.services.RunDetached(ctx, d) })
		if err == nil || !strings.Contains(err.Error(), dpkgLocked) {
			return err
		}

		slog.Warn("waits until nobody else uses dpkg", "error", err)
		doing.Say("waits until nobody else uses dpkg: %v", err)
		if backoff.Sleep(ctx, dpkgRetryInterval) != nil {
			return err
		}
	}
}

const (
	dpkgLocked        = " lock was locked by another process" // what dpkg says if another one runs
	dpkgRetryInterval = 5 * time.Second                       // until the next try
)

// isUnreadable reports whether a program has ended since a page of its own file could not be read.
func isUnreadable(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGBUS
}
