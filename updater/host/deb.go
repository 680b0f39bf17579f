package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// installDeb installs a package as a unit of its own, so that a package script
// that restarts the worker does not kill its own installer. What an installation
// that lost power has left half-way is finished first.
func (h *Host) installDeb(ctx context.Context, name, file string) error {
	err := h.dpkg(ctx, `dpkg --configure -a --force-confold; exec dpkg --install --force-confold "$1"`, file)
	if err != nil {
		return fmt.Errorf("cannot install the package of %s: %w", name, err)
	}
	return nil
}

// tryDeb tries the program that the package will put in place of the executable, if
// it lies there.
func (h *Host) tryDeb(ctx context.Context, file, executable string) error {
	draft := h.draft()
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	defer os.RemoveAll(draft)
	if err := run(ctx, []string{"dpkg-deb", "--extract", file, draft}, nil); err != nil {
		return fmt.Errorf("cannot unpack the release: %w", err)
	}
	program := filepath.Join(draft, executable)
	if info, err := os.Lstat(program); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return try(ctx, program)
}

// Mend finishes what an installation that lost power has left half-way, if there
// is dpkg, and anything to be finished. One that still runs is waited for. Where power
// went while dpkg put neco's own files into their places, it wants them again: from
// own, the package that this program came from, if that is there.
func (h *Host) Mend(ctx context.Context, own string) error {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, dpkg, "--audit").Output(); err == nil && len(out) == 0 {
		return nil
	}
	if err := h.dpkg(ctx, "exec dpkg --configure -a --force-confold"); err != nil {
		return fmt.Errorf("cannot finish an installation of before: %w", err)
	}
	if _, err := os.Stat(own); err != nil || !wanted(ctx, "neco") {
		return nil
	}
	return h.installDeb(ctx, "neco", own)
}

// wanted tells if dpkg wants the package to be installed again.
func wanted(ctx context.Context, name string) bool {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${db:Status-Eflag}", name).Output()
	return err == nil && string(out) == "reinstreq"
}

// dpkg runs a script that calls dpkg, of which one runs at a time.
func (h *Host) dpkg(ctx context.Context, script string, args ...string) error {
	select {
	case h.dpkgs <- struct{}{}:
		defer func() { <-h.dpkgs }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return h.services.Detached(ctx, Detached{
		Name:    "neco-install",
		Command: append([]string{"/bin/sh", "-c", script, "sh"}, args...),
		Env:     []string{"DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Log:     filepath.Join(h.dir, "install.log"),
	})
}
