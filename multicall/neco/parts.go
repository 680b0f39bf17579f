package neco

import (
	"context"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Parts describe the program to the commands.
type Parts struct {
	Version  string                      // of this release
	Manifest release.Manifest            // of this release
	Server   Server                      // that neco is called on
	Demo     func(console.Streams) error // shows it all
	// OpenEnvironment opens what a page shows of the environment in use; nil: there is none.
	OpenEnvironment func(ctx context.Context, s console.Streams) (*dashboard.Environment, error)
}

// Server is the machine that neco is called on, as the daemons there see it.
type Server struct {
	// LRN returns the boot server's number; the error says why this machine has none.
	LRN func() (int, error)
	// Diagnose diagnoses the components of the manifest, the disks that the worker writes to,
	// and the clock; dir is the worker's own folder. It changes nothing.
	Diagnose func(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error)
	// Journal returns the last lines that a unit of systemd's has logged, or why there are none.
	Journal func(ctx context.Context, unit string, lines int) string
	// Notify sends an alert to all configured places, and returns the names of those that
	// have got it. It returns updater.ErrNoReceiver if there are none.
	Notify func(ctx context.Context, config record.Config, a record.Alert) (names []string, err error)
}
