// Package provision makes sure that every machine in the state has an agent on a running instance, and that
// dead machines and stray instances are removed.
//
// Plan decides, and is a pure function. Run reads the state, queries the provider, and acts while it is the
// leader. The leader also carries out the requests of units' agents (state/requests). Providers start and
// stop instances (provision/provider).
package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/requests"
)

const (
	planInterval    = time.Minute      // how often to plan if nothing has changed
	sweepInterval   = 10 * time.Minute // how often to sweep the state
	restartInterval = time.Second      // how long to wait after an error
	listTimeout     = time.Minute      // limits a call of Provider.Instances
	startTimeout    = 20 * time.Minute // limits a call of Provider.Start
	stopTimeout     = 5 * time.Minute  // limits a call of Provider.Stop

	// maxSettleTime limits how long changes are collected before a plan.
	maxSettleTime   = 500 * time.Millisecond
	provisionerName = "provisioner" // the name of its log
)

// Options are the settings of a provisioner.
type Options struct {
	State    *state.State
	Provider provider.Provider
	// Process is the session with which the provisioner campaigns. Other roles of the process can share it.
	// If it is nil, the provisioner opens its own session.
	Process *state.SharedSession
	Log     *slog.Logger // nil for slog.Default()
	// Now decides when failed starts are retried. nil means time.Now.
	Now func() time.Time

	// Fault is called at points at which a test can kill the process: before-request and after-request,
	// before and after the leader commits the request of an agent. It can be nil.
	Fault func(point string)
}

// Run campaigns for the leadership of provisioners. While it leads, it plans and acts after every change of
// machines, soon after an agent has disappeared, and at least every minute. It also carries out the requests
// of units' agents. Several provisioners can run, but only the leader acts. Run returns nil when ctx is done.
// It returns an error only if the environment's store was deleted, replaced or closed, or if the environment
// has moved to a different store. Instances keep running after Run returns.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Process == nil {
		const announces = false // this process has no agents
		o.Process = state.NewSharedSession(o.State, announces)
		defer closeBounded(ctx, "session", o.Log, o.Process.Close)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	measureIdle(o.State.Metrics())

	previousKey := ""
	for {
		err := campaign(ctx, o)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrClosed) {
			return fmt.Errorf("cannot provision: %w", err)
		}

		// A lasting error is logged only once. All errors of an outage have the same key.
		key := logKey(err)
		if err != nil && key != previousKey {
			o.Log.Warn("restarting the provisioner", "error", err)
		}
		previousKey = key

		if backoff.Sleep(ctx, restartInterval) != nil {
			return nil
		}
	}
}

// logKey returns a key by which equal errors are logged once: the error's text, or the same text for all errors
// of an outage. It returns "" for nil.
func logKey(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, state.ErrAway):
		return state.ErrAway.Error()
	}

	return err.Error()
}

// campaign waits for the leadership, and leads until the leadership ends, ctx is done or the leader's work
// fails. It then resigns the leadership. Its error says why it has ended.
func campaign(ctx context.Context, o Options) error {
	session, err := o.Process.AnnouncedSession(ctx)
	if err != nil {
		return err
	}
	leadership, err := state.CampaignToProvision(ctx, session)
	if err != nil {
		return err
	}
	defer closeBounded(ctx, "leadership", o.Log, leadership.Resign)

	// leading ends with the leadership, or when the leader's work ends.
	leading, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		defer stop()
		select {
		case <-leadership.Done():
		case <-leading.Done():
		}
	})
	// The helpers write as the leader, so the leadership is resigned only after they have ended.
	defer helpers.Wait()

	o.Log.Info("provisioner leads")
	defer measureIdle(o.State.Metrics())
	l := newLeader(o, state.Under(leadership))

	helpers.Go(func() { l.recorder.run(leading) })
	helpers.Go(func() {
		defer stop()
		// The error can be ignored: stop ends l.run, and a lasting cause makes the next campaign fail.
		_ = requests.Run(leading, o.State, l.stepUpdater("request"), o.Log)
	})

	// The pool's jobs and the helpers end only when leading ends, so stop must run before both waits.
	defer l.pool.wait()
	defer stop()

	err = l.run(leading)
	if errors.Is(err, context.Canceled) {
		// The cause can also be that requests.Run has failed. If the caller has cancelled ctx, Run ignores this
		// error.
		return errors.New("the leadership was lost")
	}

	return err
}

// stepUpdater returns the leader's updater with two fault points: before-STEP before each commit, and
// after-STEP after each successful one. Without a fault function, it returns the updater itself.
func (l *leader) stepUpdater(step string) state.Updater {
	if l.Fault == nil {
		return l.update
	}

	return func(ctx context.Context, f func(tx *state.Tx) error) error {
		l.Fault("before-" + step)
		if err := l.update(ctx, f); err != nil {
			return err
		}
		l.Fault("after-" + step)
		return nil
	}
}

// closeBounded calls close, even if ctx is done. It gives up after 5 seconds, since the store may be
// unreachable. It only logs an error, since the session or leadership then expires by itself. The argument
// name is "session" or "leadership".
func closeBounded(ctx context.Context, name string, log *slog.Logger, close func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := close(ctx); err != nil {
		log.Debug("the provisioner's "+name+" is left to expire", "error", err)
	}
}
