// Package daemon is what all daemons of this binary do alike: they run until they are told to end,
// report to the service manager, log, wait for a store that is away, claim what is one process's
// only, and make way for another binary. What a daemon works at is a function that its room hands
// to Run: multicall/agents, multicall/necodaemon. It imports none of their roles.
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

// Daemon is one daemon that runs.
type Daemon struct {
	Call     applet.Call
	Notifier *ServiceNotifier
}

// Run runs a daemon until SIGTERM or SIGINT. It logs to stderr, which the starter has
// redirected to the machine's log, or systemd to its own.
func Run(c applet.Call, command console.Command, serve func(ctx context.Context, d Daemon) error) int {
	if _, err := console.Parse(c.Streams, command, c.Args); err != nil {
		return console.Report(c.Streams.Err, err)
	}

	applet.SetLogOutput(rotateAgentLog(c.Streams.Err, maxAgentLogSize))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signals := make(chan os.Signal, 1) // beside ctx: who hands over has to know for certain
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	slog.Info(command.Name+" begins", "pid", os.Getpid(), "bijou", applet.Version)
	n := newServiceNotifier()
	err := n.runNotifying(ctx, func() error { return serve(ctx, Daemon{Call: c, Notifier: n}) })
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // it was told to end while it waited
	}

	next, handsOver := errors.AsType[Reexec](err)
	ending := ctx.Err() != nil
	if handsOver {
		// From here on nobody catches a signal: it ends this process, whichever program it is by then.
		stop()
		signal.Stop(signals)
		ending = len(signals) > 0
	}

	switch {
	case handsOver && ending:
		handsOver = false
		err = nil
		slog.Info(command.Name+" ends", "instead of", next.Error())
	case handsOver:
		slog.Info(command.Name+" hands over", "how", next.Error())
		err = next.Exec()
	default:
		slog.Info(command.Name+" ends", "error", err)
	}
	if !handsOver && n.Listening && !ending && isFinished(err) {
		err = console.Exit(systemd.ExitFinished, err)
	}

	return console.Report(c.Streams.Err, err)
}

// Reexec is the error of a daemon whose work another binary is to continue.
type Reexec interface {
	error
	// Exec makes this process that binary's; it returns only if that fails.
	Exec() error
}

// isFinished reports whether the error means that the daemon has no more work, even if it is started again.
func isFinished(err error) bool {
	return err == nil || errors.Is(err, home.ErrRemoving) || errors.Is(err, home.ErrNoEnvironment) ||
		errors.Is(err, state.ErrNotFound)
}

// Role is one part of a process; it returns when ctx is done, or its work is.
type Role func(ctx context.Context) error

// RunRoles runs a process's roles until all have ended. It cancels the other roles when one ends for any
// reason. A store that is gone ends all, and RunRoles returns that as one error.
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

// ReadRetrying does what state.Read does, and retries until the store answers.
func ReadRetrying[T any](ctx context.Context, s *state.State, f func(v *state.View) (T, error)) (result T, err error) {
	err = RetryWhileAway(ctx, func() (err error) {
		result, err = state.Read(ctx, s, f)
		return err
	})
	return result, err
}

// RetryInterval is between two tries at what is away.
const RetryInterval = time.Second

// RetryWhileAway calls f until the store answers. It logs once that the store is away.
func RetryWhileAway(ctx context.Context, f func() error) error {
	for logged := false; ; logged = true {
		err := f()
		if err == nil {
			return nil
		}
		if !errors.Is(err, state.ErrAway) {
			return fmt.Errorf("cannot begin: %w", err)
		}

		if !logged {
			slog.Warn("cannot begin; trying again until it succeeds", "error", err)
		}
		if err := backoff.Sleep(ctx, RetryInterval); err != nil {
			return err
		}
	}
}

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
		slog.Warn("cannot notify the service manager", "words", words, "error", err)
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

// maxAgentLogSize is in bytes.
const maxAgentLogSize = 10 << 20

// agentLog is the file to which a daemon's starter has redirected stderr, opened to
// append. Above maxSize it is copied beside itself and truncated, so that it remains the
// file that the Go runtime, too, writes to.
type agentLog struct {
	*os.File
	path    string
	maxSize int64
}

// rotateAgentLog returns a writer that bounds stderr if that is an agent.log. It returns any other stderr
// unchanged, since the journal, or the owner of a different file, bounds it.
func rotateAgentLog(stderr io.Writer, maxSize int64) io.Writer {
	if f, ok := stderr.(*os.File); ok {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if info, serr := f.Stat(); err == nil && serr == nil && info.Mode().IsRegular() &&
			filepath.Base(path) == "agent.log" {
			return agentLog{File: f, path: path, maxSize: maxSize}
		}
	}

	return stderr
}

func (a agentLog) Write(p []byte) (int, error) {
	n, err := a.File.Write(p)
	if info, serr := a.Stat(); serr == nil && info.Size() > a.maxSize {
		if data, rerr := os.ReadFile(a.path); rerr == nil && os.WriteFile(a.path+".1", data, 0o600) == nil {
			_ = a.Truncate(0)
		}
	}

	return n, err
}

// ServeMetrics serves Prometheus until stop is called; without an address, nothing.
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
	serving.Go(func() { _ = s.Serve(l) }) // until stop
	return func() { _ = s.Close(); serving.Wait() }, nil
}
