// Package daemon has the behaviour that is the same for all daemons of this binary. They run until a signal
// arrives, report to the service manager, log, and wait for an unreachable store. They claim entities that
// only one process can serve, and hand over to a different binary. The work of a daemon is a function that
// its package gives to Run.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"bijou/agent/pulse"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/metrics"
)

// Daemon is one running daemon.
type Daemon struct {
	Call     applet.Call
	Notifier *ServiceNotifier
}

// Run parses the command line and calls serve, whose context is done after SIGTERM or SIGINT. It returns the exit code.
// If serve returns a [Reexec], Run executes the different binary instead, unless a signal has arrived. The daemon logs to
// stderr, which leads to the machine's log or to systemd's journal.
func Run(c applet.Call, command console.Command, serve func(ctx context.Context, d Daemon) error) int {
	if _, err := console.Parse(c.Streams, command, c.Args); err != nil {
		return console.Report(c.Streams.Err, err)
	}

	applet.SetLogOutput(rotateAgentLog(c.Streams.Err, maxAgentLogSize))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// This channel keeps a signal that arrives after the last check of ctx, and before the handlers are removed below.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	slog.Info(command.Name+" begins", "pid", os.Getpid(), "bijou", applet.Version)
	n := newServiceNotifier()
	err := n.runNotifying(ctx, func() error { return serve(ctx, Daemon{Call: c, Notifier: n}) })
	isSignalled := ctx.Err() != nil
	// A daemon that a signal has ended while it waited has not failed.
	if isSignalled && errors.Is(err, context.Canceled) {
		err = nil
	}

	if next, handsOver := errors.AsType[Reexec](err); handsOver {
		// From this point no handler catches a signal. So a signal ends this process, even after Exec.
		stop()
		signal.Stop(signals)
		if len(signals) > 0 {
			// A signal has arrived, so no other binary must continue the work.
			slog.Info(command.Name+" ends", "instead of", next.Error())
			return console.ExitOK
		}

		slog.Info(command.Name+" hands over", "how", next.Error())
		return console.Report(c.Streams.Err, next.Exec())
	}

	slog.Info(command.Name+" ends", "error", err)
	// The daemon has no more work. This exit code keeps systemd from starting it again.
	if n.Listening && !isSignalled && isFinished(err) {
		err = console.Exit(systemd.ExitFinished, err)
	}
	return console.Report(c.Streams.Err, err)
}

// Reexec is the error of a daemon whose work a different binary must continue.
type Reexec interface {
	error
	// Exec replaces this process with that binary. It returns an error if it cannot, and does not return otherwise.
	Exec() error
}

// isFinished reports whether the error means that the daemon has no more work, even if it is started again.
func isFinished(err error) bool {
	return err == nil || errors.Is(err, home.ErrRemoving) || errors.Is(err, home.ErrNoEnvironment) ||
		errors.Is(err, state.ErrNotFound)
}

// Role is one part of a process. It returns when ctx is done, or when its work has ended.
type Role func(ctx context.Context) error

// RunRoles runs a process's roles until all have ended, and returns their joined errors. When any role ends, it
// cancels the others. If roles end because the store is gone, it returns only one of their errors, and no other
// error.
func RunRoles(ctx context.Context, roles []Role) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	errs := make([]error, len(roles))
	var running sync.WaitGroup
	for i, r := range roles {
		running.Go(func() {
			defer cancel()
			errs[i] = r(ctx)
		})
	}

	running.Wait()
	for _, err := range errs {
		if errors.Is(err, state.ErrStoreGone) {
			return err
		}
	}

	return errors.Join(errs...)
}

// ReadRetrying is like [state.Read], but tries again while the store is unreachable, as [RetryWhileAway] does.
func ReadRetrying[T any](ctx context.Context, s *state.State, f func(v *state.View) (T, error)) (result T, err error) {
	err = RetryWhileAway(ctx, func() (err error) {
		result, err = state.Read(ctx, s, f)
		return err
	})
	return result, err
}

// RetryInterval is the pause between two attempts to reach a store.
const RetryInterval = time.Second

// RetryWhileAway calls f again as long as f fails because the store is unreachable, which it logs once. It returns
// nil once f succeeds, any other error of f after the words "cannot start", or ctx's error.
func RetryWhileAway(ctx context.Context, f func() error) error {
	isLogged := false
	for {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(err, state.ErrAway) {
			return fmt.Errorf("cannot start: %w", err)
		}

		if !isLogged {
			slog.Warn("cannot start; trying again until that succeeds", "error", err)
			isLogged = true
		}
		if err := backoff.Sleep(ctx, RetryInterval); err != nil {
			return err
		}
	}
}

// hangTimeout is longer than any iteration of a working agent's loop. A store reports that it is unreachable within a
// tenth of this time.
const hangTimeout = 5 * time.Minute

// ServiceNotifier reports to the service manager that started the daemon (sd_notify). It does nothing if
// there is no service manager. It works across a re-execution, which keeps the process id and the environment
// variables.
type ServiceNotifier struct {
	Pulse     *pulse.Watchdog // detects a loop of the daemon that hangs
	Listening bool            // whether a service manager listens
}

// newServiceNotifier returns a notifier, and reports to the service manager that the daemon begins.
func newServiceNotifier() *ServiceNotifier {
	n := &ServiceNotifier{Pulse: pulse.New()}
	n.Listening = n.notify("STATUS=begins")
	return n
}

// NotifyReady reports that the daemon is ready.
func (n *ServiceNotifier) NotifyReady() { n.notify(sd.SdNotifyReady + "\nSTATUS=at work") }

// notifyStopping reports that the daemon waits for running hooks to end.
func (n *ServiceNotifier) notifyStopping() {
	n.notify(sd.SdNotifyStopping + "\nSTATUS=waiting for running hooks to end")
}

// notify sends lines of sd_notify(3) to the service manager. It returns false if there is none, or if this fails. It
// logs an error.
func (n *ServiceNotifier) notify(words string) (heard bool) {
	const unsetEnvironment = false // later calls, and the process after a re-execution, need the variables
	heard, err := sd.SdNotify(unsetEnvironment, words)
	if err != nil {
		slog.Warn("cannot notify the service manager", "words", words, "error", err)
	}
	return heard
}

// runNotifying calls work and returns its error. If a service manager listens, runNotifying meanwhile feeds its
// watchdog. Once ctx is done, it also reports that the daemon is stopping.
func (n *ServiceNotifier) runNotifying(ctx context.Context, work func() error) error {
	if !n.Listening {
		return work()
	}

	// Feed the watchdog also after ctx is done, while work waits for running hooks to end.
	feedCtx, stopFeeding := context.WithCancel(context.WithoutCancel(ctx))
	var feeding sync.WaitGroup
	feeding.Go(func() { n.feedWatchdog(feedCtx) })
	cancelNotice := context.AfterFunc(ctx, n.notifyStopping)

	// Deferred calls run in reverse order. stopFeeding must run before Wait, which blocks until feedWatchdog ends.
	defer feeding.Wait()
	defer stopFeeding()
	defer cancelNotice()

	return work()
}

// feedWatchdog notifies the service manager's watchdog until ctx is done, or until a loop of the daemon hangs. In
// the second case the service manager then kills and restarts the daemon. If the service manager has no watchdog
// for this daemon, feedWatchdog returns at once.
func (n *ServiceNotifier) feedWatchdog(ctx context.Context) {
	const unsetEnvironment = false // the process after a re-execution needs the variables
	timeout, err := sd.SdWatchdogEnabled(unsetEnvironment)
	if err != nil || timeout == 0 {
		return // there is no watchdog, or its timeout cannot be parsed
	}

	tick := time.NewTicker(timeout / 3) // so that one late notification is harmless
	defer tick.Stop()

	for {
		if loop := n.Pulse.HungLoop(hangTimeout); loop != "" {
			slog.Error("a loop hangs: no longer notifying the service manager's watchdog", "loop", loop)
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

// maxAgentLogSize is the size in bytes above which an agent's log is rotated.
const maxAgentLogSize = 10 << 20

// agentLog is the file agent.log, to which stderr of the daemon is redirected in append mode. Once the file is larger
// than maxSize, Write copies it to agent.log.1 and truncates it. It does not replace the file, since the Go runtime also
// writes to stderr.
type agentLog struct {
	*os.File
	path    string
	maxSize int64
}

// rotateAgentLog returns a writer for stderr. If stderr is a file named agent.log, the writer rotates the file
// once it is larger than maxSize bytes. rotateAgentLog returns any other stderr unchanged, since the journal, or
// the owner of a different file, limits its size.
func rotateAgentLog(stderr io.Writer, maxSize int64) io.Writer {
	f, ok := stderr.(*os.File)
	if !ok {
		return stderr
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || filepath.Base(path) != "agent.log" {
		return stderr
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return stderr
	}

	return agentLog{File: f, path: path, maxSize: maxSize}
}

// Write writes a line to the log, and then rotates the log if it is too large. It ignores errors of the rotation, which
// the next call tries again.
func (a agentLog) Write(p []byte) (int, error) {
	n, err := a.File.Write(p)
	if info, statErr := a.Stat(); statErr == nil && info.Size() > a.maxSize {
		a.rotate()
	}

	return n, err
}

// rotate copies the log to a second file, and truncates the log if the copy succeeded.
func (a agentLog) rotate() {
	data, err := os.ReadFile(a.path)
	if err != nil {
		return
	}
	if err := os.WriteFile(a.path+".1", data, 0o600); err != nil {
		return
	}
	_ = a.Truncate(0)
}

// ServeMetrics serves m as /metrics for Prometheus, at the TCP address, until stop is called. It returns an error
// if it cannot listen there. If address is empty, it serves nothing, and stop does nothing.
func ServeMetrics(address string, m *metrics.Registry) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w", err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		m.Write(w)
	})

	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() {
		// Serve returns an error also after s.Close. Any other error ends only the metrics, not the daemon.
		_ = s.Serve(l)
	})

	stop = func() {
		_ = s.Close()
		serving.Wait()
	}
	return stop, nil
}
