package necodaemon

import (
	"context"

	"bijou/updater/host"
	"bijou/updater/leader"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Server is this machine as its daemons see it, for neco's commands.
type Server struct{}

// LRN returns the boot server's number.
func (Server) LRN() (int, error) { return host.LRN() }

// Diagnose diagnoses components, disks and clock.
func (Server) Diagnose(ctx context.Context, dir string, m release.Manifest) ([]record.Diagnosis, error) {
	h, err := host.New(host.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return h.Diagnose(ctx, m), nil
}

// Journal returns the last lines of a unit.
func (Server) Journal(ctx context.Context, unit string, lines int) string {
	return host.Journal(ctx, unit, lines)
}

// Notify sends an alert as a leader here would.
func (Server) Notify(ctx context.Context, config record.Config, a record.Alert) ([]string, error) {
	return leader.Notify(ctx, config, a)
}
