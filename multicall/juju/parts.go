package juju

import (
	"context"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/home"
	"bijou/state"
)

// Parts are the rest of the binary, as far as the commands need it.
type Parts struct {
	Version   string   // bijou's
	Applets   []string // links to make in the tools folder
	HookTools []string // the hook tools among them, which charms may hold as links
	// ToolSummary returns one line about a hook tool, and ToolHelp what its --help prints.
	ToolSummary func(name string) string
	ToolHelp    func(name string) string

	Processes Processes
	Claims    Claims
	Services  Services
	Hooks     Hooks
	Providers Providers

	// Owed returns what a unit's agent would do now, as the state is; "" if it would wait for
	// something to change. That update-status comes every few minutes does not count.
	Owed func(v *state.View, unit string) (string, error)
	// SweepTools removes the tools that nobody runs any more, but for those named and
	// the environment's own.
	SweepTools func(e home.Environment, keep ...string) error
	// RemoveFiles removes what the agents of the environment keep outside of its folder.
	RemoveFiles func(e home.Environment) error
	// OpenFleet opens what a page shows of boot servers; nil: there are none.
	OpenFleet func(ctx context.Context, s console.Streams) (*dashboard.Fleet, error)
	// OtherJuju returns a juju on PATH that is another program; "" if there is none.
	OtherJuju func() string
	// Fault, unless it is nil, is called at named points, for tests.
	Fault func(point string)
}

// Processes run machines on this host.
type Processes interface {
	// Start starts the environment's background process (machine 0, with the
	// provisioner) and does not wait for it; alive reports whether it still lives.
	Start(e home.Environment) (alive func() bool, err error)
	// Running returns the id of the process that runs the local machine of that
	// folder, 0 if none does.
	Running(dir string) (pid int, err error)
	// Process is Running, but for a process, too, that is about to run it or has just done so.
	Process(dir string) (pid int, err error)
	// Halt ends the process that runs the local machine of that folder, or is about to, and
	// returns when none does.
	Halt(ctx context.Context, dir string, grace time.Duration) error
}

// Claims tell who holds the claim of a machine.
type Claims interface {
	// Holder returns a folder of this host, as machines' claims name it.
	Holder(dir string) (state.Holder, error)
	// IsAlive reports whether a claim's holder is a live process of this host.
	IsAlive(h state.Holder) bool
	// IsStopped reports whether a live holder was stopped (SIGSTOP), so that it cannot end by itself.
	IsStopped(h state.Holder) bool
}

// Services are systemd's services of this host.
type Services interface {
	// Of returns the service that the process belongs to; "" is none.
	Of(pid int) string
	// Stop has systemd end that service, and returns when it has.
	Stop(service string) error
	// AtBoot returns the service that the environment's background process is or would be, and
	// whether systemd starts it at boot; "" if there is no systemd here.
	AtBoot(e home.Environment) (service string, starts bool)
}

// Hooks are commands that run as hooks do, and what is left of them.
type Hooks interface {
	// Run runs a command as if it were a hook. An error says why it could not
	// be run, or nothing be written; the exit code goes with it.
	Run(ctx context.Context, s *state.State, c HookCommand) (HookOutcome, error)
	// Quiesce keeps hooks of a unit of this host from beginning, and returns once none runs.
	// onWait is called if it has to wait. It returns ErrCannotQuiesce, or ctx's error.
	Quiesce(ctx context.Context, machineDir, unit string, onWait func()) (Quiesced, error)
	// EndStrays ends processes that hooks have left running: those with the word
	// NAME=VALUE in their environment.
	EndStrays(ctx context.Context, word string) error
}

// Providers make machines, on this host or others.
type Providers interface {
	// Inspect asks the provider that an environment is to have what it can do.
	// If there is no such provider, the error lists those that there are.
	Inspect(ctx context.Context, e home.Environment, config map[string]string) (Provider, error)
	// CheckSettings refuses settings of the environment that an operator gives, where they are the
	// provider's, and it does not have them.
	CheckSettings(provider string, given map[string]string) error
	// CheckSeries refuses a series that machines of the environment cannot have on this host as it is, and
	// says what to install. What only the provider's own host knows is not checked.
	CheckSeries(e home.Environment, env state.Environment, series string) error
	// Access returns how to get onto a machine that has an instance, or is machine 0.
	Access(e home.Environment, env state.Environment, m state.Machine) (Access, error)
	// FreeInstances stops what the environment's provider has made. No provisioner runs meanwhile. It calls
	// progress again and again while instances are stopped, from its own goroutine.
	FreeInstances(ctx context.Context, e home.Environment, progress func(state.Steps)) error
}

// Provider describes a provider to bootstrap.
type Provider struct {
	Series   string // the only one that its machines can have; "": any
	SHA256   string // of its executable; empty: it is this binary
	Isolated bool   // a machine's processes and files are its own
	Remote   bool   // machines are on other hosts
}
