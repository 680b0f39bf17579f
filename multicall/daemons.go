package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state"
)

// place is where a daemon finds its environment: a folder of BIJOU_HOME, or the
// parts of one by themselves.
type place struct {
	Env   string `placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
	State string `placeholder:"URL" help:"The environment's state; default: as --env says."`
	Dir   string `placeholder:"DIR" type:"path" help:"The machine's folder; default: below --env."`
	Tools string `placeholder:"DIR" type:"path" help:"The folder of hook tools; default: as --env says, else this binary's."`
}

// errRemoving: the environment is being destroyed.
var errRemoving = errors.New("it is being destroyed")

// complete fills in what the environment's folder says. Where that names a binary
// other than this one, the daemon is to go on as that: a service manager, or a
// shell's PATH, may have started one that was replaced since.
func (p *place) complete() (home.Environment, error) {
	var e home.Environment
	if p.Env != "" {
		var err error
		if e, err = home.Load(p.Env); err != nil {
			return e, err
		}
		if e.Phase == home.Removing {
			return e, fmt.Errorf("cannot run for environment %q: %w", e.Name, errRemoving)
		}
		if p.Tools == "" && !runs(e.ToolsDir()) {
			return e, succeeded{e.ToolsDir()}
		}
		p.State, p.Tools = or(p.State, e.State), or(p.Tools, e.ToolsDir())
	}
	if p.State == "" {
		return e, console.Hint(console.Usage(errors.New("it is not said where the environment is")), "give --env DIR, or --state URL")
	}
	if p.Tools == "" {
		binary, err := self()
		if err != nil {
			return e, err
		}
		p.Tools = filepath.Dir(binary)
	}
	return e, nil
}

// runs says if this process runs the binary of that folder of tools.
func runs(tools string) bool { return same("/proc/self/exe", filepath.Join(tools, "bijou")) }

// machineDir is the folder of the machine with that id.
func (p *place) machineDir(e home.Environment, id string) (string, error) {
	switch {
	case p.Dir != "":
		return p.Dir, nil
	case p.Env != "":
		return e.MachineDir(id), nil
	}
	return "", console.Hint(console.Usage(errors.New("it is not said where the machine's folder is")), "give --env DIR, or --dir DIR")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// machineAgentGrammar is the command line of machine-agent.
type machineAgentGrammar struct {
	Machine string `required:"" placeholder:"ID" help:"The machine to serve."`
	place
}

const machineAgentSummary = `Runs the units of one machine, until it is told to stop (SIGTERM) or the machine is destroyed.
On machine 0, and where "juju add-machine --provisioner" said so, it hosts a provisioner as well.
"juju bootstrap" and "juju start" start that of machine 0 in the background.

Examples:
  machine-agent --machine 0 --env ~/.bijou/default
  machine-agent --machine 3 --state sqlite:/srv/state.db --dir /var/lib/bijou`

// runMachineAgent is machine-agent.
func runMachineAgent(c call) int {
	var g machineAgentGrammar
	return daemon(c, console.Command{Name: "machine-agent", Summary: machineAgentSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveMachine(ctx, d, g.Machine, g.place)
	})
}

// unitAgentGrammar is the command line of unit-agent.
type unitAgentGrammar struct {
	Unit string `required:"" placeholder:"UNIT" help:"The unit to run, SERVICE/N."`
	place
}

const unitAgentSummary = `Runs one unit alone, until it is told to stop (SIGTERM) or the unit is gone. While a machine agent
runs that unit, it waits.

Examples:
  unit-agent --unit wordpress/0 --env ~/.bijou/default`

// runUnitAgent is unit-agent.
func runUnitAgent(c call) int {
	var g unitAgentGrammar
	return daemon(c, console.Command{Name: "unit-agent", Summary: unitAgentSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveUnit(ctx, d, g.Unit, g.place)
	})
}

// provisionerGrammar is the command line of provisioner.
type provisionerGrammar struct {
	Env string `required:"" placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
}

const provisionerSummary = `Makes sure that every machine has a live instance, and that dead ones go. Several may run: one leads.
Machine 0 hosts one, and so do machines of "juju add-machine --provisioner"; this is another.

Examples:
  provisioner --env ~/.bijou/default`

// runProvisioner is provisioner.
func runProvisioner(c call) int {
	var g provisionerGrammar
	return daemon(c, console.Command{Name: "provisioner", Summary: provisionerSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveProvisioner(ctx, d, place{Env: g.Env})
	})
}

// daemonParts is what every daemon has.
type daemonParts struct {
	options Options
	manager *manager
}

// daemon reads the command line and runs until SIGTERM or SIGINT. It logs to
// stderr, which the starter has sent to the machine's log, or systemd to its own.
func daemon(c call, command console.Command, serve func(ctx context.Context, d daemonParts) error) int {
	if _, err := console.Parse(c.streams, command, c.args); err != nil {
		return console.Report(c.streams.Err, err)
	}
	logTo(rotating(c.streams.Err, maxAgentLog))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	told := make(chan os.Signal, 1) // beside ctx: who hands over has to know for certain
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(told)
	slog.Info(command.Name+" begins", "pid", os.Getpid(), "bijou", Version)
	m := newManager()
	err := m.guard(ctx, func() error { return serve(ctx, daemonParts{options: c.options, manager: m}) })
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // it was told to end while it waited
	}
	next, hands := errors.AsType[heir](err)
	ending := ctx.Err() != nil
	if hands {
		// From here on nobody catches a signal: it ends this process, whichever program it is by then.
		stop()
		signal.Stop(told)
		ending = len(told) > 0
	}
	switch {
	case hands && ending:
		hands, err = false, nil
		slog.Info(command.Name+" ends", "instead of", next.Error())
	case hands:
		slog.Info(command.Name+" hands over", "how", next.Error())
		err = next.exec()
	default:
		slog.Info(command.Name+" ends", "error", err)
	}
	if !hands && m.there && !ending && isOver(err) {
		err = console.Exit(systemd.Over, err)
	}
	return console.Report(c.streams.Err, err)
}

// heir is the error of a daemon whose work another binary is to go on with.
type heir interface {
	error
	exec() error // makes this process that binary's; returns only if that fails
}

// isOver says if what a daemon ended with means that there is nothing for it to do
// any more, however often it is started.
func isOver(err error) bool {
	return err == nil || errors.Is(err, errRemoving) || errors.Is(err, home.ErrNoEnvironment) || errors.Is(err, state.ErrNotFound)
}

// open opens the place's state. A store that is away is waited for: whoever
// started the daemon may not be there to do it again.
func (p *place) open(ctx context.Context) (s *state.State, err error) {
	err = outlast(ctx, func() (err error) {
		s, err = state.Open(ctx, p.State)
		return err
	})
	return s, err
}

// look reads what a daemon needs to begin, however long the store is away.
func look(ctx context.Context, s *state.State, f func(v *state.View) error) error {
	return outlast(ctx, func() error { return s.View(ctx, f) })
}

// comeback is how long a store that is away is left alone.
const comeback = time.Second

// outlast calls f until the store is not away any more, and says once that it is.
func outlast(ctx context.Context, f func() error) error {
	for said := false; ; said = true {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(err, state.ErrAway) {
			return fmt.Errorf("cannot begin: %w", err)
		}
		if !said {
			slog.Warn("cannot begin; trying again until it succeeds", "error", err)
		}
		select {
		case <-time.After(comeback):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
