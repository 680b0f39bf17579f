package juju

import (
	"context"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/home"
	"bijou/state"
)

// Parts are the parts of the binary that the commands need.
type Parts struct {
	Version   string   // bijou's version
	Applets   []string // the symlinks to create in the directory of tools
	HookTools []string // the hook tools among Applets, whose symlinks a charm may contain
	// ToolSummary returns one line about a hook tool, and ToolHelp returns the output of its --help.
	ToolSummary func(name string) string
	ToolHelp    func(name string) string

	Processes Processes
	Claims    Claims
	Services  Services
	Hooks     Hooks
	Providers Providers

	// Owed returns the next step of a unit's agent in the current state, or "" if the agent would wait for a
	// change. It ignores update-status, which runs every few minutes.
	Owed func(v *state.View, unit string) (string, error)
	// SweepTools removes the tools that no process runs any longer, except those in keep and
	// the environment's own.
	SweepTools func(e home.Environment, keep ...string) error
	// RemoveFiles removes the files that the environment's agents keep outside of its directory.
	RemoveFiles func(e home.Environment) error
	// OpenFleet opens the boot servers' state for the dashboard. It returns nil if $NECO_STATE is not set.
	OpenFleet func(ctx context.Context, s console.Streams) (*dashboard.Fleet, error)
	// OtherJuju returns the path of a program called juju on PATH that is not bijou, or "" if there is none.
	OtherJuju func() string
	// Fault, if it is not nil, is called at named points, so that tests can kill the program there.
	Fault func(point string)
}

// Processes are the processes that run machines on this host.
type Processes interface {
	// Start starts the environment's background process (machine 0, with the
	// provisioner) and does not wait for it. alive reports whether the process is still
	// running.
	Start(e home.Environment) (alive func() bool, err error)
	// Running returns the id of the process that runs the local machine of that directory, or 0 if no process
	// runs it.
	Running(dir string) (pid int, err error)
	// Process is like Running. It also returns a process that is about to run the machine, or
	// has just stopped running it.
	Process(dir string) (pid int, err error)
	// Halt ends the process that runs the local machine of that directory, or is about to run it. It returns
	// once no such process is left. It kills a process that has not ended after grace.
	Halt(ctx context.Context, dir string, grace time.Duration) error
}

// Claims describe the holders of machines' claims.
type Claims interface {
	// Holder returns the holder to record in a claim that this host's directory dir takes.
	Holder(dir string) (state.Holder, error)
	// IsAlive reports whether a claim's holder is a running process on this host.
	IsAlive(h state.Holder) bool
	// IsStopped reports whether a holder's process is stopped (SIGSTOP), so that it cannot end.
	IsStopped(h state.Holder) bool
}

// Services are the systemd services of this host.
type Services interface {
	// Of returns the service to which the process belongs, or "" if it belongs to none.
	Of(pid int) string
	// Stop stops the service, and returns once it has ended.
	Stop(service string) error
	// AtBoot returns the service of the environment's background process, which may not exist
	// yet. starts reports whether systemd starts it at boot. service is "" if this host does
	// not run systemd.
	AtBoot(e home.Environment) (service string, starts bool)
}

// Hooks run commands as hooks, pause the hooks of units, and end processes that hooks have left.
type Hooks interface {
	// Run runs a command as if it were a hook. It returns an error if the command
	// could not be run, or its changes could not be written. The outcome has an exit
	// code even if Run returns an error.
	Run(ctx context.Context, s *state.State, c HookCommand) (HookOutcome, error)
	// Quiesce keeps hooks of a unit on this host from beginning, and returns once no hook is running. It
	// calls onWait if it has to wait. It returns ErrCannotQuiesce if the unit's agent is too old, or ctx's
	// error.
	Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (Quiesced, error)
	// EndStrays ends the processes that hooks have left running on this host. It finds
	// them by word, a variable NAME=VALUE of their environment.
	EndStrays(ctx context.Context, word string) error
}

// Providers create machines on this host, or use other hosts as machines.
type Providers interface {
	// Inspect returns the description that the provider of a new environment gives of itself. If there is no
	// such provider, the error lists the existing ones.
	Inspect(ctx context.Context, e home.Environment, config map[string]string) (Provider, error)
	// CheckSettings returns an error if an operator gives settings of the provider that the provider does not
	// have.
	CheckSettings(provider string, given map[string]string) error
	// CheckSeries returns an error if machines of the environment cannot have the series on this host. The
	// error names the missing package. CheckSeries does not check facts that only the provider's own host can
	// determine.
	CheckSeries(e home.Environment, env state.Environment, series string) error
	// Access returns the access to machine 0, or to a machine that has an instance.
	Access(e home.Environment, env state.Environment, m state.Machine) (Access, error)
	// FreeInstances stops the instances that the environment's provider has created. No provisioner may run
	// during the call. It calls progress repeatedly while it stops instances, from its own goroutine.
	FreeInstances(ctx context.Context, e home.Environment, progress func(state.Steps)) error
}

// Provider describes a provider to bootstrap.
type Provider struct {
	Series   string // the only series that the provider's machines can have, or "" for any
	SHA256   string // the checksum of its executable; empty if the provider is part of this binary
	Isolated bool   // machines do not share processes and files with their host
	Remote   bool   // machines are on other hosts
}
