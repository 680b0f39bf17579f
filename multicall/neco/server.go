package neco

import (
	"context"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Server is the machine that neco is called on, as the daemons there see it.
type Server interface {
	// LRN returns the boot server's number; the error says why this machine has none.
	LRN() (int, error)
	// Diagnose diagnoses the components of the manifest, the disks that the worker writes to,
	// and the clock; dir is the worker's own folder. It changes nothing.
	Diagnose(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error)
	// Journal returns the last lines that a unit of systemd's has logged, or why there are none.
	Journal(ctx context.Context, unit string, lines int) string
	// Notify sends an alert to all configured places, and returns the names of those that
	// have got it. It returns updater.ErrNoReceiver if there are none.
	Notify(ctx context.Context, config record.Config, a record.Alert) (names []string, err error)
}
