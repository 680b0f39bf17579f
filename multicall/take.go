package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/multicall/systemd"
	"bijou/provision/local"
	"bijou/provision/local/process"
)

// takeoverGrace is how long a process whose machine a service takes over may take
// to end: its hooks in flight have ten seconds.
const takeoverGrace = 30 * time.Second

// take makes this process the one that runs the machine of that folder. A daemon
// that systemd has started takes over from a process that it does not know, as
// bootstrap starts one; two services never do so to each other.
func (d daemonParts) take(ctx context.Context, dir string) (*process.Hold, error) {
	hold, err := process.Take(dir)
	if !d.manager.there || !errors.Is(err, process.ErrHeld) {
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
	if err := local.Halt(ctx, dir, takeoverGrace); err != nil {
		return nil, err
	}
	return process.Take(dir)
}
