package worker

import (
	"context"

	"bijou/updater/record"
	"bijou/updater/release"
)

// Server does a worker's work on its own server; package host implements it. Every
// method can be repeated, and ends early when ctx does.
type Server interface {
	// Configure applies the configuration to whatever is begun from now on.
	Configure(c record.Config) error
	// NeedsUpdate reports whether the component is not what the release says, was left half-way, or
	// was started with others of its files.
	NeedsUpdate(ctx context.Context, c release.Component) (bool, error)
	// Differences describes in which ways the component is not what the release says.
	Differences(ctx context.Context, c release.Component) ([]string, error)
	// Prepare downloads what an update needs, and touches nothing else.
	Prepare(ctx context.Context, c release.Component) error
	// Stop stops the component's services.
	Stop(ctx context.Context, c release.Component) error
	// Update makes the component what the release says, and returns once it is
	// healthy. One that has not changed and is healthy is left alone.
	Update(ctx context.Context, c release.Component) error
	// CheckHealth returns what is the matter with the component; nil if it is healthy.
	CheckHealth(ctx context.Context, c release.Component) error
	// IsRunning reports whether the component's services run, healthy or not.
	IsRunning(ctx context.Context, c release.Component) bool
	// CheckMembers returns what is the matter with those servers' members of the component,
	// without the healthy ones. asked is false if there is no way to find out.
	CheckMembers(ctx context.Context, c release.Component, lrns []int) (unhealthy map[int]error, asked bool)
	// DeliverContents uploads the component's contents to where they belong.
	DeliverContents(ctx context.Context, c release.Component) error
}
