package host

import (
	"context"
	"fmt"
	"path/filepath"
)

// installDeb installs a package as a unit of its own, so that a package script
// that restarts the worker does not kill its own installer. What an installation
// that lost power has left half-way is finished first.
func (h *Host) installDeb(ctx context.Context, name, file string) error {
	script := `dpkg --configure -a --force-confold; exec dpkg --install --force-confold "$1"`
	err := h.services.Detached(ctx, Detached{
		Name:    "neco-install-" + name,
		Command: []string{"/bin/sh", "-c", script, "sh", file},
		Env:     []string{"DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Log:     filepath.Join(h.dir, "install-"+name+".log"),
	})
	if err != nil {
		return fmt.Errorf("cannot install the package of %s: %w", name, err)
	}
	return nil
}
