package multicall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"bijou/agent"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/provision/local"
	"bijou/provision/local/process"
)

// strayGrace is how long what a hook has left running may take to end.
const strayGrace = 5 * time.Second

// runJuju is juju.
func runJuju(c call) int {
	logTo(c.streams.Err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return juju.Main(ctx, c.streams, jujuParts(), c.args)
}

// jujuParts hands the operator's commands what they need of the other roles.
func jujuParts() juju.Parts {
	return juju.Parts{
		Version:   Version,
		Applets:   names(),
		HookTools: hookToolNames(),
		Start:     startBackground,
		Running:   running,
		Halt:      local.Halt,
		Sweep:     sweepProcesses,
		RunAsHook: runAsHook,
		UnitDir:   agent.UnitDir,
		Forget:    func(e home.Environment) error { return agent.RemoveSockets(e.UUID) },
	}
}

// startBackground starts machine 0's process.
func startBackground(e home.Environment) (alive func() bool, err error) {
	i, err := process.Detach(machineProcess(e, "0"))
	return i.Alive, err
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
