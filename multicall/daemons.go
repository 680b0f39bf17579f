package multicall

import (
	"cmp"
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
	"bijou/state/backoff"
)

// daemonFlags say where a daemon finds its environment: a folder of BIJOU_HOME, or the
// parts of one by themselves.
type daemonFlags struct {
	Env   string `placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
	State string `placeholder:"URL" help:"The environment's state; default: as --env says."`
	Dir   string `placeholder:"DIR" type:"path" help:"The machine's folder; default: below --env."`
	Tools string `placeholder:"DIR" type:"path" help:"The folder of hook tools; default: as --env says, else this binary's."`
}

var errRemoving = errors.New("it is being destroyed")

// loadEnvironment fills in what the environment's folder says. Where that names another
// binary than this one, the daemon is to re-execute as that: a service manager, or a
// shell's PATH, may have started one that was replaced since.
func (p *daemonFlags) loadEnvironment() (home.Environment, error) {
	var e home.Environment
	if p.Env != "" {
		var err error
		if e, err = home.Load(p.Env); err != nil {
			return e, err
		}
		if e.Phase == home.Removing {
			return e, fmt.Errorf("cannot run for environment %q: %w", e.Name, errRemoving)
		}
		if p.Tools == "" && !runsFrom(e.ToolsDir()) {
			return e, toolsReexec{e.ToolsDir()}
		}
		p.State, p.Tools = cmp.Or(p.State, e.State), cmp.Or(p.Tools, e.ToolsDir())
	}
	if p.State == "" {
		return e, console.Hint(console.Usage(errors.New("it is not said where the environment is")), "give --env DIR, or --state URL")
	}
	if p.Tools == "" {
		binary, err := executablePath()
		if err != nil {
			return e, err
		}
		p.Tools = filepath.Dir(binary)
	}
	return e, nil
}

func runsFrom(tools string) bool { return isSameFile("/proc/self/exe", filepath.Join(tools, "bijou")) }

func (p *daemonFlags) machineDir(e home.Environment, id string) (string, error) {
	switch {
	case p.Dir != "":
		return p.Dir, nil
	case p.Env != "":
		return e.MachineDir(id), nil
	}
	return "", console.Hint(console.Usage(errors.New("it is not said where the machine's folder is")), "give --env DIR, or --dir DIR")
}

type machineAgentGrammar struct {
	Machine string `required:"" placeholder:"ID" help:"The machine to serve."`
	daemonFlags
}

const machineAgentSummary = `Runs the units of one machine, until it is told to stop (SIGTERM) or the machine is destroyed.
On machine 0, and where "juju add-machine --provisioner" said so, it hosts a provisioner as well.
"juju bootstrap" and "juju start" start that of machine 0 in the background.

Examples:
  machine-agent --machine 0 --env ~/.bijou/default
  machine-agent --machine 3 --state sqlite:/srv/state.db --dir /var/lib/bijou`

func runMachineAgent(c call) int {
	var g machineAgentGrammar
	return runDaemon(c, console.Command{Name: "machine-agent", Summary: machineAgentSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveMachine(ctx, d, g.Machine, g.daemonFlags)
	})
}

type unitAgentGrammar struct {
	Unit string `required:"" placeholder:"UNIT" help:"The unit to run, SERVICE/N."`
	daemonFlags
}

const unitAgentSummary = `Runs one unit alone, until it is told to stop (SIGTERM) or the unit is gone. While a machine agent
runs that unit, it waits.

Examples:
  unit-agent --unit wordpress/0 --env ~/.bijou/default`

func runUnitAgent(c call) int {
	var g unitAgentGrammar
	return runDaemon(c, console.Command{Name: "unit-agent", Summary: unitAgentSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveUnit(ctx, d, g.Unit, g.daemonFlags)
	})
}

type provisionerGrammar struct {
	Env string `required:"" placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
}

const provisionerSummary = `Makes sure that every machine has a live instance, and that dead ones go. Several may run: one leads.
Machine 0 hosts one, and so do machines of "juju add-machine --provisioner"; this is another.

Examples:
  provisioner --env ~/.bijou/default`

func runProvisioner(c call) int {
	var g provisionerGrammar
	return runDaemon(c, console.Command{Name: "provisioner", Summary: provisionerSummary, Grammar: &g}, func(ctx context.Context, d daemonParts) error {
		return serveProvisioner(ctx, d, daemonFlags{Env: g.Env})
	})
}

type daemonParts struct {
	options  Options
	notifier *serviceNotifier
}

// runDaemon runs until SIGTERM or SIGINT. It logs to stderr, which the starter has
// redirected to the machine's log, or systemd to its own.
func runDaemon(c call, command console.Command, serve func(ctx context.Context, d daemonParts) error) int {
	if _, err := console.Parse(c.streams, command, c.args); err != nil {
		return console.Report(c.streams.Err, err)
	}
	setLogOutput(rotateAgentLog(c.streams.Err, maxAgentLogSize))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signals := make(chan os.Signal, 1) // beside ctx: who hands over has to know for certain
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	slog.Info(command.Name+" begins", "pid", os.Getpid(), "bijou", Version)
	n := newServiceNotifier()
	err := n.runNotifying(ctx, func() error { return serve(ctx, daemonParts{options: c.options, notifier: n}) })
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // it was told to end while it waited
	}
	next, handsOver := errors.AsType[reexec](err)
	ending := ctx.Err() != nil
	if handsOver {
		// From here on nobody catches a signal: it ends this process, whichever program it is by then.
		stop()
		signal.Stop(signals)
		ending = len(signals) > 0
	}
	switch {
	case handsOver && ending:
		handsOver, err = false, nil
		slog.Info(command.Name+" ends", "instead of", next.Error())
	case handsOver:
		slog.Info(command.Name+" hands over", "how", next.Error())
		err = next.exec()
	default:
		slog.Info(command.Name+" ends", "error", err)
	}
	if !handsOver && n.listening && !ending && isFinished(err) {
		err = console.Exit(systemd.ExitFinished, err)
	}
	return console.Report(c.streams.Err, err)
}

// reexec is the error of a daemon whose work another binary is to continue.
type reexec interface {
	error
	exec() error // makes this process that binary's; returns only if that fails
}

// isFinished reports whether the error means that the daemon has nothing to do any more,
// however often it is started.
func isFinished(err error) bool {
	return err == nil || errors.Is(err, errRemoving) || errors.Is(err, home.ErrNoEnvironment) || errors.Is(err, state.ErrNotFound)
}

// openState waits for a store that is away: whoever started the daemon may not be there to
// do it again.
func (p *daemonFlags) openState(ctx context.Context) (s *state.State, err error) {
	err = retryWhileAway(ctx, func() (err error) {
		s, err = state.Open(ctx, p.State)
		return err
	})
	return s, err
}

func viewRetrying(ctx context.Context, s *state.State, f func(v *state.View) error) error {
	return retryWhileAway(ctx, func() error { return s.View(ctx, f) })
}

const awayRetryInterval = time.Second

// retryWhileAway logs once that the store is away.
func retryWhileAway(ctx context.Context, f func() error) error {
	for logged := false; ; logged = true {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(err, state.ErrAway) {
			return fmt.Errorf("cannot begin: %w", err)
		}
		if !logged {
			slog.Warn("cannot begin; trying again until it succeeds", "error", err)
		}
		if err := backoff.Sleep(ctx, awayRetryInterval); err != nil {
			return err
		}
	}
}
