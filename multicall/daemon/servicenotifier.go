package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"bijou/agent/pulse"
)

// hangTimeout is longer than one turn of a working agent's loop: ten times what a store
// takes to report that it is away.
const hangTimeout = 5 * time.Minute

// ServiceNotifier reports to the service manager that started the daemon (sd_notify); where none
// did, to nobody. It works across a re-execution, which keeps process id and environment.
type ServiceNotifier struct {
	Pulse     *pulse.Watchdog // of the daemon's loops: when one hangs, the manager is to know
	Listening bool            // a service manager listens
}

func newServiceNotifier() *ServiceNotifier {
	n := &ServiceNotifier{Pulse: pulse.New()}
	n.Listening = n.notify("STATUS=begins")
	return n
}

// NotifyReady reports that the daemon is at work.
func (n *ServiceNotifier) NotifyReady() { n.notify(sd.SdNotifyReady + "\nSTATUS=at work") }

func (n *ServiceNotifier) notifyStopping() {
	n.notify(sd.SdNotifyStopping + "\nSTATUS=hooks in flight may end")
}

func (n *ServiceNotifier) notify(words string) (heard bool) {
	heard, err := sd.SdNotify(false, words)
	if err != nil {
		slog.Warn("cannot tell the service manager", "words", words, "error", err)
	}
	return heard
}

func (n *ServiceNotifier) runNotifying(ctx context.Context, work func() error) error {
	if !n.Listening {
		return work()
	}
	feedCtx, stopFeeding := context.WithCancel(context.WithoutCancel(ctx))
	var feeding sync.WaitGroup
	feeding.Go(func() { n.feedWatchdog(feedCtx) })
	defer feeding.Wait()
	defer stopFeeding()
	defer context.AfterFunc(ctx, n.notifyStopping)()
	return work()
}

// feedWatchdog stops feeding when a loop hangs, so that the service manager kills and
// restarts the daemon.
func (n *ServiceNotifier) feedWatchdog(ctx context.Context) {
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		if loop := n.Pulse.HungLoop(hangTimeout); loop != "" {
			slog.Error("a loop hangs: the service manager's watchdog is not fed any more", "loop", loop)
			return
		}
		n.notify(sd.SdNotifyWatchdog)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
