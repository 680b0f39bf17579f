package hookexec

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/executable"
)

// trampoline holds the hook's process back until it is recorded: it waits for a line on
// descriptor 3, and then becomes the hook under the same process id. If the agent dies
// first it reads the end of the pipe and exits instead. A shell that counts its level must
// not leave a trace of itself.
const trampoline = `read -r go <&3 || exit 125; exec 3<&-; unset SHLVL OLDPWD; exec "$0" "$@"`

// process is one hook's process, held back or released.
type process struct {
	cmd  *exec.Cmd
	gate *os.File // a line releases the process, closing ends it
}

func startHeld(s Spec, argv []string, out *outputReader) (*process, error) {
	wait, gate, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer wait.Close()

	// Whoever started the agent may have left descriptors open in it.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	cmd := exec.Command("/bin/sh", append([]string{"-c", trampoline}, argv...)...)
	cmd.Dir, cmd.Env = s.CharmDir, s.Env
	cmd.Stdout, cmd.Stderr = out.pipes[0].hookEnd, out.pipes[1].hookEnd
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		gate.Close()
		return nil, fmt.Errorf("cannot start the hook: %w", err)
	}
	return &process{cmd: cmd, gate: gate}, nil
}

// release records the process before it lets it run. If it cannot be recorded, the process
// ends without having run the hook.
func (p *process) release(s Spec, path string) error {
	defer p.gate.Close()
	s.faultPoint("after-spawn")
	if err := writeRecord(s.Record, s.ID, p.cmd.Process.Pid); err != nil {
		return err
	}
	s.faultPoint("after-note")
	executable.AwaitNoWriter(path, time.Second)
	if _, err := p.gate.WriteString("\n"); err != nil {
		return fmt.Errorf("cannot let the hook go: %w", err)
	}
	return nil
}

func (p *process) wait(ctx context.Context, interrupt <-chan struct{}) Outcome {
	ended := make(chan error, 1) // buffered: the sender never waits for us
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		return newOutcome(err)
	case <-interrupt:
	case <-ctx.Done():
	}
	select {
	case err := <-ended: // by itself, and whom it left in its group is a daemon
		return newOutcome(err)
	default:
	}
	if ctx.Err() == nil {
		terminateGroup(ctx, p.cmd.Process.Pid)
	}
	_ = killGroup(p.cmd.Process.Pid)
	<-ended
	return Outcome{Interrupted: true}
}
