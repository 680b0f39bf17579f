package do

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalRelay keeps this process alive while its command runs, and forwards the signals
// that are meant for the command.
type signalRelay struct {
	signals chan os.Signal // buffered: the sender does not wait for us
	ended   chan struct{}
	wg      sync.WaitGroup
}

// newSignalRelay catches the signals. Those that the caller has ignored (nohup) stay
// ignored, by the command too.
func newSignalRelay() *signalRelay {
	r := &signalRelay{signals: make(chan os.Signal, 16), ended: make(chan struct{})}
	for _, s := range []os.Signal{
		syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}
	return r
}

func (r *signalRelay) forwardTo(p *os.Process) {
	r.wg.Go(func() {
		for {
			select {
			case s := <-r.signals:
				if !isTyped(s) {
					_ = p.Signal(s) // it may have ended
				}
			case <-r.ended:
				return
			}
		}
	})
}

func (r *signalRelay) close() {
	signal.Stop(r.signals)
	close(r.ended)
	r.wg.Wait()
}

// isTyped reports whether a signal comes from the keyboard: the terminal sends those to all
// processes of the group in its foreground, the command among them.
func isTyped(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
