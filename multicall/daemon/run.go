// Package daemon is what all daemons of this binary do alike: they run until they are told to end,
// report to the service manager, log, wait for a store that is away, claim what is one process's
// only, and make way for another binary. What a daemon works at is a function that its room hands
// to Run: multicall/agents, multicall/necodaemon. It imports none of their roles.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/systemd"
	"bijou/state"
	"bijou/state/backoff"
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
		handsOver, err = false, nil
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

// isFinished reports whether the error means that the daemon has nothing to do any more,
// however often it is started.
func isFinished(err error) bool {
	return err == nil || errors.Is(err, home.ErrRemoving) || errors.Is(err, home.ErrNoEnvironment) || errors.Is(err, state.ErrNotFound)
}

// Role is one part of a process; it returns when ctx is done, or its work is.
type Role func(ctx context.Context) error

// RunRoles runs a process's roles until all have ended. It cancels the other roles when one
// ends, for whatever reason. A store that is gone ends all, and is returned as one error.
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

// ReadRetrying is state.Read as soon as the store answers.
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
