package host

import (
	"fmt"
	"path/filepath"

	"bijou/state/osutil"
)

// holdFile returns the path of a drop-in that keeps systemd from starting a unit, even at the next boot.
// Other servers may be running the new version by that time.
func holdFile(unit string) string {
	return filepath.Join("/etc/systemd/system", unit+".d", "90-neco-stopped.conf")
}

// holdUnit writes the drop-in of holdFile. It takes effect once systemd has read it.
func holdUnit(unit string) error {
	file := holdFile(unit)
	if err := osutil.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	// The assertion fails as long as this file exists.
	text := "# neco-worker has stopped this unit for an update, and starts it again.\n[Unit]\nAssertPathExists=!%s\n"
	return osutil.WriteFile(file, fmt.Appendf(nil, text, file), 0o644)
}

// unholdUnit removes the drop-in, if it exists.
func unholdUnit(unit string) error {
	return osutil.Remove(holdFile(unit))
}
