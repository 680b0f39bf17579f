package multicall

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"bijou/agent/pulse"
)

// tooLong is how long one turn of an agent's loop cannot take as long as it works:
// ten times what a store takes to say that it is away.
const tooLong = 5 * time.Minute

// manager is what a daemon tells the service manager that started it (sd_notify);
// where none did, nobody. What it is told survives a hand-over: the successor has
// the same process id and environment.
type manager struct {
	pulse *pulse.Pulse
	there bool // a service manager listens
}

// newManager finds out if there is one.
func newManager() *manager {
	m := &manager{pulse: pulse.New()}
	m.there = m.tell("STATUS=begins")
	return m
}

// ready says that the daemon's presence is announced.
func (m *manager) ready() { m.tell(sd.SdNotifyReady + "\nSTATUS=at work") }

// stopping says that the daemon was told to end, and does so.
func (m *manager) stopping() {
	m.tell(sd.SdNotifyStopping + "\nSTATUS=hooks in flight may end")
}

func (m *manager) tell(words string) (heard bool) {
	heard, err := sd.SdNotify(false, words)
	if err != nil {
		slog.Warn("cannot tell the service manager", "words", words, "error", err)
	}
	return heard
}

// guard runs a daemon's work, and keeps the service manager told meanwhile.
func (m *manager) guard(ctx context.Context, work func() error) error {
	if !m.there {
		return work()
	}
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	var feeding sync.WaitGroup
	feeding.Go(func() { m.feed(over) })
	defer feeding.Wait()
	defer end()
	defer context.AfterFunc(ctx, m.stopping)()
	return work()
}

// feed tells the service manager's watchdog that the daemon lives, as long as no
// loop of it hangs, until ctx is done. One that hangs is killed, and started again.
func (m *manager) feed(ctx context.Context) {
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 3)
	defer tick.Stop()
	for {
		if loop := m.pulse.Hung(tooLong); loop != "" {
			slog.Error("a loop hangs: the service manager's watchdog is not fed any more", "loop", loop)
			return
		}
		m.tell(sd.SdNotifyWatchdog)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
