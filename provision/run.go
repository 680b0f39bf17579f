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
// machines, soon after an agent has disappeared, and at least every minute. Several provisioners can run, but
// only the leader acts. Run returns nil when ctx is done, and an error only if the environment was deleted or
// closed. Instances keep running after Run returns.
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

	for said := ""; ; {
		err := campaign(ctx, o)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, state.ErrStoreGone), errors.Is(err, state.ErrClosed):
			return fmt.Errorf("cannot provision: %w", err)
		case err != nil && logKey(err) != said:
			// A lasting error is logged only once.
			o.Log.Warn("restarting the provisioner", "error", err)
		}

		said = logKey(err)
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

// campaign waits for the leadership, and leads until the leadership or ctx ends.
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
	var beside sync.WaitGroup
	beside.Go(func() {
		defer stop()
		select {
		case <-leadership.Done():
		case <-leading.Done():
		}
	})
	// The goroutines write as the leader, so the leadership is resigned after their end.
	defer beside.Wait()

	o.Log.Info("provisioner leads")
	defer measureIdle(o.State.Metrics())
	l := newLeader(o, state.Under(leadership))

	beside.Go(func() { l.recorder.run(leading) })
	beside.Go(func() {
		defer stop()
		// The error is ignored, since l.run then fails too. If it only fails with Canceled, the next campaign
		// fails with this error.
		_ = requests.Run(leading, o.State, l.stepUpdater("request"), o.Log)
	})

	// The pool's jobs and the goroutines only end when leading does, so stop runs first.
	defer l.pool.wait()
	defer stop()

	err = l.run(leading)
	if errors.Is(err, context.Canceled) {
		// If the caller has cancelled ctx, Run ignores this error.
		return errors.New("the leadership was lost")
	}

	return err
}

// stepUpdater returns the leader's updater with two fault points around each commit, before-STEP and
// after-STEP.
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

// closeBounded calls close, but gives up after a while, since the store may be unreachable.
func closeBounded(ctx context.Context, what string, log *slog.Logger, close func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := close(ctx); err != nil {
		log.Debug("the provisioner's "+what+" is left to expire", "error", err)
	}
}
