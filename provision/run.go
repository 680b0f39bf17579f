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
)

const (
	interval   = time.Minute      // how often it looks although nothing has changed
	sweepEvery = 10 * time.Minute // how often left-overs in state are swept
	comeback   = time.Second      // how long it waits when the store is away
	askLimit   = time.Minute      // how long the provider may take to list its instances
	startLimit = 20 * time.Minute // to start one
	stopLimit  = 5 * time.Minute  // to stop one

	// longestPause is how long what changes is left to gather, at most.
	longestPause = 500 * time.Millisecond
	leader       = "provisioner" // what it campaigns for
)

// Options say what a provisioner works on.
type Options struct {
	State    *state.State
	Provider provider.Provider
	Process  *state.Process   // whose session it campaigns by, shared with other roles; nil: its own
	Log      *slog.Logger     // nil: slog.Default()
	Now      func() time.Time // nil: time.Now; when failed starts are due
}

// Run is the provisioner: it campaigns, and while it leads does what Plan says,
// on every change of machines, soon after an agent has gone, and at least every minute. Several may run; one
// acts. It returns nil when ctx is done, and an error only if the environment
// is gone for good. Instances go on without it.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Process == nil {
		o.Process = state.NewProcess(o.State, false)
		defer end(ctx, "session", o.Log, o.Process.Close)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for said := ""; ; {
		err := campaign(ctx, o)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, state.ErrStoreGone), errors.Is(err, state.ErrClosed):
			return fmt.Errorf("cannot provision: %w", err)
		case err != nil && cause(err) != said: // what lasts is said once
			o.Log.Warn("provisioner begins anew", "error", err)
		}
		said = cause(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(comeback):
		}
	}
}

// cause is what keeps the provisioner from its work: the same for all of an
// outage, whoever was asked.
func cause(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, state.ErrAway):
		return state.ErrAway.Error()
	}
	return err.Error()
}

// campaign waits to become the leader and leads until that ends.
func campaign(ctx context.Context, o Options) error {
	session, err := o.Process.Standing(ctx)
	if err != nil {
		return err
	}
	leadership, err := session.Campaign(ctx, leader)
	if err != nil {
		return err
	}
	defer end(ctx, "leadership", o.Log, leadership.Resign)
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
	l := &lead{Options: o, leadership: leadership, crew: newCrew(), records: newRecorder(leadership.Update), holds: holds{}, absent: absences{}}
	beside.Go(func() { l.records.run(ctx) })
	defer l.crew.wait()
	defer cancel()
	err = l.run(ctx)
	if errors.Is(err, context.Canceled) {
		return errDeposed // unless all of it was told to end
	}
	return err
}

// errDeposed: the leader's session ended, or another took over.
var errDeposed = errors.New("the leadership was lost")

// end ends what is held, in bounded time although the store may be away.
func end(ctx context.Context, what string, log *slog.Logger, close func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := close(ctx); err != nil {
		log.Debug("the provisioner's "+what+" is left to expire", "error", err)
	}
}
