package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// holdFile keeps systemd from starting a unit: also at the next boot, when others
// may run the new version already.
func holdFile(unit string) string {
	return filepath.Join("/etc/systemd/system", unit+".d", "90-neco-stopped.conf")
}

// hold writes it.
func hold(unit string) error {
	file := holdFile(unit)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	text := "# neco-worker has stopped this unit for an update, and starts it again.\n[Unit]\nAssertPathExists=!%s\n"
	return renameio.WriteFile(file, fmt.Appendf(nil, text, file), 0o644)
}

// unhold removes it.
func unhold(unit string) error {
	if err := os.Remove(holdFile(unit)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
