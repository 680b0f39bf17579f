package neco

import (
	"context"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Parts are the parts of the binary that the commands need.
type Parts struct {
	Version  string                      // the version of this release
	Manifest release.Manifest            // the manifest of this release
	Server   Server                      // the host on which neco is called
	Demo     func(console.Streams) error // runs neco demo
	// OpenEnvironment opens the current environment for the dashboard. It returns nil if there is no current
	// environment.
	OpenEnvironment func(ctx context.Context, s console.Streams) (*dashboard.Environment, error)
}

// Server is the host on which neco is called, as the daemons on that host see it.
type Server struct {
	// LRN returns the boot server's number, or an error if this host is not a boot server.
	LRN func() (int, error)
	// Diagnose diagnoses the components of the manifest, the disks that the worker writes to,
	// and the clock. dir is the worker's own directory. It changes nothing.
	Diagnose func(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error)
	// Journal returns the last lines that a systemd unit has logged, or the reason why there are no such
	// lines.
	Journal func(ctx context.Context, unit string, lines int) string
	// Notify sends an alert to all configured receivers, and returns the names of the receivers that have
	// received it. It returns updater.ErrNoReceiver if no receiver is configured.
	Notify func(ctx context.Context, config record.Config, a record.Alert) (names []string, err error)
}
