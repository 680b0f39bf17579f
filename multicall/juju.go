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
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/multicall/systemd"
	"bijou/provision/local"
	"bijou/provision/local/process"
)

// strayTimeout is how long a process that a hook has left may take to end.
const strayTimeout = 5 * time.Second

func runJuju(c call) int {
	if len(c.args) > 0 && (c.args[0] == "--version" || c.args[0] == "version") {
		return runBijou(call{args: []string{"version"}, streams: c.streams})
	}
	setLogOutput(c.streams.Err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts := jujuParts()
	var err error
	if parts.Fault, err = newFault(c.options); err != nil {
		return console.Report(c.streams.Err, err)
	}
	return juju.Main(ctx, c.streams, parts, c.args)
}

func jujuParts() juju.Parts {
	return juju.Parts{
		Version:   Version,
		Applets:   appletNames(),
		HookTools: hookToolNames(),
		Start:     startBackground,
		Running:   runningPID,
		HolderOf:  holderOf,
		IsAlive:   isAlive,
		Service:   systemd.ServiceOf,
		Halt:      local.Halt,

		StopService:      systemd.Stop,
		SweepTools:       sweepTools,
		FreeInstances:    freeInstances,
		EndStrays:        endStrays,
		RunAsHook:        runAsHook,
		UnitDir:          agent.UnitFolder,
		InspectProvider:  inspectProvider,
		RemoveAgentFiles: removeAgentFiles,
		Access:           accessMachine,
	}
}

func startBackground(e home.Environment) (alive func() bool, err error) {
	if systemd.Manages(e) {
		err := console.Hint(systemd.Start(e), "as root: systemctl start "+systemd.MachineUnitName(e))
		return func() bool { return systemd.IsActive(e) }, err
	}
	i, err := process.Detach(machineProcess(e, "0"))
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
