package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/multicall/daemon"
	"bijou/multicall/systemd"
	"bijou/provision/local"
	"bijou/provision/local/process"
)

// takeoverTimeout bounds the end of a process whose machine a service takes over: its
// hooks in flight have ten seconds.
const takeoverTimeout = 30 * time.Second

// holdMachineFolder locks the folder of a machine for this process; the machine's claim, in the
// store, is another thing. A daemon that systemd has started takes over from a process that systemd
// does not know, as bootstrap starts one; two services never do so to each other.
func holdMachineFolder(ctx context.Context, d daemon.Daemon, dir string) (*process.Hold, error) {
	hold, err := process.Take(dir)
	if !d.Notifier.Listening || !errors.Is(err, process.ErrHeld) {
		return hold, err
	}
	holder, gone := process.Holder(dir)
	if gone != nil {
		return nil, err
	}
	if service := systemd.ServiceOf(holder.PID); service != "" {
		return nil, fmt.Errorf("%w: process %d of %s", err, holder.PID, service)
	}
	slog.Info("the machine's process is asked to end: from now on it is systemd's", "pid", holder.PID)
	if err := local.Halt(ctx, dir, takeoverTimeout); err != nil {
		return nil, err
	}
	return process.Take(dir)
}
