// Package provision makes sure that every machine in state has an agent on a
// live instance, and that dead machines and stray instances go away.
//
// Plan decides, on plain values; Run reads, asks and acts, as long as it is the leader. Beside that the
// leader does what units' agents request of it (state/requests). How an instance is made is the
// provider's business (provision/provider). Only multicall imports it.
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
	planInterval    = time.Minute      // how often it looks although nothing has changed
	sweepInterval   = 10 * time.Minute // how often left-overs in state are swept
	restartInterval = time.Second      // how long it waits when the store is away
	listTimeout     = time.Minute      // how long the provider may take to list its instances
	startTimeout    = 20 * time.Minute // to start one
	stopTimeout     = 5 * time.Minute  // to stop one

	// maxSettleTime is how long what changes is left to gather, at most.
	maxSettleTime   = 500 * time.Millisecond
	provisionerName = "provisioner" // the name of its log
)

// Options configure a provisioner.
type Options struct {
	State    *state.State
	Provider provider.Provider
	Process  *state.SharedSession // whose session it campaigns by, shared with other roles; nil: its own
	Log      *slog.Logger         // nil: slog.Default()
	Now      func() time.Time     // nil: time.Now; when failed starts are due

	// Fault marks points at which a test may kill the process; nil does nothing. They are before-request
	// and after-request: a commit by which the leader does what an agent has requested.
	Fault func(point string)
}

// Run campaigns for the leadership of provisioners. While it leads it plans and acts on every change of
// machines, soon after an agent has gone, and at least every minute. Several provisioners may run; one of
// them acts. It returns nil when ctx is done, and an error only if the environment is gone for good.
// Instances outlive it.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Process == nil {
		o.Process = state.NewSharedSession(o.State, false)
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
		case err != nil && errorCause(err) != said: // what lasts is said once
			o.Log.Warn("provisioner starts again", "error", err)
		}

		said = errorCause(err)
		if backoff.Sleep(ctx, restartInterval) != nil {
			return nil
		}
	}
}

// errorCause returns the same text for all errors of an outage, so that it is logged once.
func errorCause(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, state.ErrAway):
		return state.ErrAway.Error()
	}

	return err.Error()
}

// campaign waits for the leadership, and leads until that or ctx ends.
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

	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		defer cancel()
		select {
		case <-leadership.Done():
		case <-ctx.Done():
		}
	})
	defer beside.Wait()
	defer cancel()

	o.Log.Info("provisioner leads")
	defer measureIdle(o.State.Metrics())
	l := &leader{Options: o, update: state.Under(leadership), backoffs: backoffs{}, absentAgents: absentAgents{}}
	l.pool = &jobPool{busy: map[string]runningJob{}, doneSinceTaken: map[string]bool{}}
	l.recorder = &recorder{l.update, make(chan entry, maxBatch)}
	beside.Go(func() { l.recorder.run(ctx) })
	beside.Go(func() {
		defer cancel()
		_ = requests.Run(ctx, o.State, l.stepUpdater("request"), o.Log) // whose error l.run meets, too
	})
	defer l.pool.wait()
	defer cancel()

	err = l.run(ctx)
	if errors.Is(err, context.Canceled) {
		return errors.New("the leadership was lost") // unless all of it was told to end
	}

	return err
}

// stepUpdater returns the leader's updater with commits between two fault points, before-STEP and
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

// closeBounded calls close, and gives up after a while, since the store may be away.
func closeBounded(ctx context.Context, what string, log *slog.Logger, close func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := close(ctx); err != nil {
		log.Debug("the provisioner's "+what+" is left to expire", "error", err)
	}
}
