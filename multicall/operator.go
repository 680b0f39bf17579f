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

// strayGrace is how long what a hook has left running may take to end.
const strayGrace = 5 * time.Second

// runJuju is juju.
func runJuju(c call) int {
	if len(c.args) > 0 && (c.args[0] == "--version" || c.args[0] == "version") {
		return runBijou(call{args: []string{"version"}, streams: c.streams})
	}
	logTo(c.streams.Err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts := jujuParts()
	var err error
	if parts.Fault, err = fault(c.options); err != nil {
		return console.Report(c.streams.Err, err)
	}
	return juju.Main(ctx, c.streams, parts, c.args)
}

// jujuParts hands the operator's commands what they need of the other roles.
func jujuParts() juju.Parts {
	return juju.Parts{
		Version:   Version,
		Applets:   names(),
		HookTools: hookToolNames(),
		Start:     startBackground,
		Running:   running,
		Place:     placeOf,
		Lives:     lives,
		Service:   systemd.ServiceOf,
		Halt:      local.Halt,

		StopService:   systemd.Stop,
		SweepTools:    sweepTools,
		FreeInstances: freeInstances,
		Sweep:         sweepProcesses,
		RunAsHook:     runAsHook,
		UnitDir:       agent.UnitDir,
		Examine:       examineProvider,
		Forget:        forget,
		Reach:         wayTo,
	}
}

// startBackground starts machine 0's process, or has systemd start it.
func startBackground(e home.Environment) (alive func() bool, err error) {
	if systemd.Manages(e) {
		err := console.Hint(systemd.Start(e), "as root: systemctl start "+systemd.MachineUnit(e))
		return func() bool { return systemd.Active(e) }, err
	}
	i, err := process.Detach(machineProcess(e, "0"))
	return i.Alive, err
}

// forget removes what an environment has outside of its folder. Unit files that
// this user may not remove are harmless: their service finds no environment.
func forget(e home.Environment) error {
	if err := systemd.Remove(e); err != nil {
		slog.Warn("the environment's unit files stay", "error", err)
	}
	return agent.RemoveSockets(e.UUID)
}

// running returns the id of the process that runs a local machine; 0 is none.
func running(dir string) (pid int, err error) {
	i, err := process.Holder(dir)
	if errors.Is(err, process.ErrGone) {
		return 0, nil
	}
	return i.PID, err
}

// sweepProcesses ends the processes that have the word in their environment.
func sweepProcesses(ctx context.Context, word string) error {
	for _, i := range process.Having(word) {
		what := process.Describe(i)
		if err := process.Stop(ctx, i, strayGrace); err != nil {
			return fmt.Errorf("cannot end %s: %w", what, err)
		}
	}
	return nil
}
