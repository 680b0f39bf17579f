package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state/durable"
)

// holdFile is a drop-in that keeps systemd from starting a unit: also at the next boot,
// when others may run the new version already.
func holdFile(unit string) string {
	return filepath.Join("/etc/systemd/system", unit+".d", "90-neco-stopped.conf")
}

func holdUnit(unit string) error {
	file := holdFile(unit)
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	text := "# neco-worker has stopped this unit for an update, and starts it again.\n[Unit]\nAssertPathExists=!%s\n"
	return durable.WriteFile(file, fmt.Appendf(nil, text, file), 0o644)
}

func unholdUnit(unit string) error {
	file := holdFile(unit)
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(file))
}
