package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Options configure one updater's process.
type Options struct {
	Store   *keyspace.Space
	Version string            // of this program
	Form    string            // release.Deb or release.Tarball: how this program is installed
	Metrics *metrics.Registry // may be nil
	Ready   func()            // called once it campaigns; may be nil
}

// Run campaigns, and leads once it is elected, until ctx is done. Failures are
// logged and retried; it returns an error only if the store is gone for good.
func Run(ctx context.Context, o Options) error {
	startMetrics(o.Metrics)
	if err := retryUntilDone(ctx, "look at what was stopped", func() error { return recoverAtStart(ctx, o) }); err != nil {
		return err
	}
	if o.Ready != nil {
		o.Ready()
	}
	var lost time.Time // when its last session ended for a fault
	return retryUntilDone(ctx, "lead", func() error {
		err := campaign(ctx, o, lost)
		if err != nil {
			lost = time.Now()
		}
		return err
	})
}

func retryUntilDone(ctx context.Context, what string, f func() error) error {
	for ctx.Err() == nil {
		err := f()
		switch {
		case err == nil:
			return nil
		case updater.IsStoreGone(err):
			return fmt.Errorf("cannot %s: %w", what, err)
		case ctx.Err() == nil:
			slog.Warn("cannot "+what+"; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, updater.RetryInterval)
	}
	return nil
}

func recoverAtStart(ctx context.Context, o Options) error {
	return o.Store.Update(ctx, func(tx *keyspace.Tx) error {
		s, err := decide.Load(tx.View, o.Version)
		if err != nil {
			return err
		}
		changes := decide.AtStart(s, time.Now().UTC())
		if changes == nil {
			return nil
		}
		slog.Info("the stopped update is made again: a server of it was unregistered", "version", s.Current.Version)
		name, _ := os.Hostname()
		a := record.Audit{
			Who: "neco-updater@" + name, What: "recover", Detail: fmt.Sprintf("update %d to %s", s.Current.ID, s.Current.Version),
			Why: "it was restarted, and a server of the stopped update is registered no more",
		}
		return errors.Join(updater.Apply(tx, changes), updater.Audit(tx, a))
	})
}

// campaign is one session: it blocks until it is elected, leads, and resigns, so that
// another updater can lead at once. It returns nil when ctx is done. lost is when the
// last session was lost.
func campaign(ctx context.Context, o Options, lost time.Time) error {
	session, err := o.Store.NewSession(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
		defer cancel()
		if err := session.Close(ctx); err != nil {
			slog.Debug("the session is left to expire", "error", err)
		}
	}()
	leadership, err := session.Campaign(ctx, keys.UpdaterLeader, "")
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	slog.Info("leading", "version", o.Version)
	o.Metrics.Set(1, leadsMetric)
	defer o.Metrics.Set(0, leadsMetric)
	err = runLeader(ctx, leader{Options: o, leadership: leadership, afterOutage: time.Since(lost) < decide.StallGrace})
	slog.Info("leading no more", "error", err)
	return err
}

// runLeader blocks until ctx or the leadership ends. When one part ends, which it does
// when a write of it was refused, all end.
func runLeader(ctx context.Context, l leader) error {
	reign, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	for _, part := range []func(context.Context) error{l.runDecisions, l.checkReleases, l.sendAlerts, l.sendHeartbeats} {
		parts.Go(func() { cancel(part(reign)) })
	}
	select {
	case <-l.leadership.Done():
		cancel(keyspace.ErrSessionLost)
	case <-reign.Done():
	}
	parts.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(reign)
}

func endsLeadership(err error) bool {
	return errors.Is(err, keyspace.ErrSessionLost) || updater.IsStoreGone(err)
}
