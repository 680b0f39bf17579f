package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"bijou/agent"
	"bijou/multicall/agents"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/multicall/providers"
	"bijou/multicall/systemd"
	"bijou/provision/local"
	"bijou/provision/local/process"
)

// strayTimeout is how long a process that a hook has left may take to end.
const strayTimeout = 5 * time.Second

func runJuju(c applet.Call) int {
	if len(c.Args) > 0 && (c.Args[0] == "--version" || c.Args[0] == "version") {
		return runBijou(applet.Call{Args: []string{"version"}, Streams: c.Streams})
	}
	applet.SetLogOutput(c.Streams.Err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts := jujuParts()
	var err error
	if parts.Fault, err = applet.NewFault(c.Faults); err != nil {
		return console.Report(c.Streams.Err, err)
	}
	return juju.Main(ctx, c.Streams, parts, c.Args)
}

func jujuParts() juju.Parts {
	return juju.Parts{
		Version:   applet.Version,
		Applets:   appletNames(),
		HookTools: hookToolNames(),
		Start:     startBackground,
		Running:   runningPID,
		HolderOf:  daemon.HolderOf,
		IsAlive:   daemon.IsAlive,
		Service:   systemd.ServiceOf,
		Halt:      local.Halt,

		StopService:      systemd.Stop,
		SweepTools:       agents.SweepTools,
		FreeInstances:    providers.FreeInstances,
		EndStrays:        endStrays,
		RunAsHook:        runAsHook,
		UnitDir:          agent.UnitFolder,
		InspectProvider:  providers.InspectProvider,
		RemoveAgentFiles: removeAgentFiles,
		Access:           providers.AccessMachine,
	}
}

func startBackground(e home.Environment) (alive func() bool, err error) {
	if systemd.Manages(e) {
		err := console.Hint(systemd.Start(e), "as root: systemctl start "+systemd.MachineUnitName(e))
		return func() bool { return systemd.IsActive(e) }, err
	}
	i, err := process.Detach(providers.MachineProcess(e, "0"))
	return i.Alive, err
}

// removeAgentFiles removes what lies outside of the environment's folder. Unit files that
// this user may not remove are harmless: their service finds no environment.
func removeAgentFiles(e home.Environment) error {
	if err := systemd.Remove(e); err != nil {
		slog.Warn("the environment's unit files stay", "error", err)
	}
	return agent.RemoveSockets(e.UUID)
}

// runningPID returns 0 if no process runs the machine.
func runningPID(dir string) (pid int, err error) {
	i, err := process.Holder(dir)
	if errors.Is(err, process.ErrGone) {
		return 0, nil
	}
	return i.PID, err
}

func endStrays(ctx context.Context, word string) error {
	for _, i := range process.FindByEnviron(word) {
		what := process.Describe(i)
		if err := process.Stop(ctx, i, strayTimeout); err != nil {
			return fmt.Errorf("cannot end %s: %w", what, err)
		}
	}
	return nil
}
