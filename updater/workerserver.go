package updater

import (
	"context"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Server is what a worker needs done on its server; package host does it. All of
// it can be done again, and ends early when ctx does.
type Server interface {
	// Configure has what is begun from now on follow the configuration.
	Configure(c record.Config) error
	// NeedsUpdate tells if the component is not what the release says, was left half-way, or
	// was started with others of its files.
	NeedsUpdate(ctx context.Context, c release.Component) (bool, error)
	// Differences says in words in which ways the component is not what the release says.
	Differences(ctx context.Context, c release.Component) ([]string, error)
	// Prepare brings to the disk what an update needs, and touches nothing else.
	Prepare(ctx context.Context, c release.Component) error
	// Stop stops the component's services.
	Stop(ctx context.Context, c release.Component) error
	// Update makes the component what the release says, and returns once it is
	// well. What has not changed and is well is left alone.
	Update(ctx context.Context, c release.Component) error
	// CheckHealth tells what is the matter with the component; nil is nothing.
	CheckHealth(ctx context.Context, c release.Component) error
	// IsRunning tells if the component's services run, well or not.
	IsRunning(ctx context.Context, c release.Component) bool
	// CheckMembers returns what is the matter with those servers' members of the component;
	// those that are well are not in it. asked is false if there is no way to find out.
	CheckMembers(ctx context.Context, c release.Component, lrns []int) (ill map[int]error, asked bool)
	// DeliverContents brings the component's contents to where they belong.
	DeliverContents(ctx context.Context, c release.Component) error
}
