package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
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

// Options are the settings of an updater's process.
type Options struct {
	Store   *keyspace.Space
	Version string            // the version of this program
	Form    string            // how this program is installed: release.Deb or release.Tarball
	Metrics *metrics.Registry // can be nil
	Ready   func()            // called when the updater begins to campaign; can be nil
}

// Run first recovers a stopped update if one of its servers is no longer registered. It then calls o.Ready,
// campaigns, and leads when it is elected, until ctx is done. It logs and retries failures. It returns an error only
// if the store was deleted or closed.
func Run(ctx context.Context, o Options) error {
	startMetrics(o.Metrics)
	recoverStopped := func() error { return recoverAtStart(ctx, o) }
	if err := retryUntilDone(ctx, "read the stopped update", recoverStopped); err != nil {
		return err
	}

	if o.Ready != nil {
		o.Ready()
	}

	var lost time.Time // when the last call of campaign failed
	return retryUntilDone(ctx, "lead", func() error {
		err := campaign(ctx, o, lost)
		if err != nil {
			lost = time.Now()
		}
		return err
	})
}

// retryUntilDone calls f until it succeeds or ctx ends. It returns an error only if the store is gone. action
// describes f after the word "cannot" in messages.
func retryUntilDone(ctx context.Context, action string, f func() error) error {
	for ctx.Err() == nil {
		err := f()
		switch {
		case err == nil:
			return nil
		case updater.IsStoreGone(err):
			return fmt.Errorf("cannot %s: %w", action, err)
		case ctx.Err() == nil:
			slog.Warn("cannot "+action+"; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, updater.RetryInterval)
	}

	return nil
}

// recoverAtStart recovers a stopped update if one of its servers is no longer registered, so that the leader makes a
// new request in its place. It also records this for the audit.
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

		slog.Info("starting the stopped update again: one of its servers was unregistered",
			"version", s.Current.Version)
		name, _ := os.Hostname()
		a := record.Audit{
			Who:    "neco-updater@" + name,
			What:   "recover",
			Detail: fmt.Sprintf("update %d to %s", s.Current.ID, s.Current.Version),
			Why:    "neco-updater was restarted, and a server of the stopped update is no longer registered",
		}

		if err := updater.Apply(tx, changes); err != nil {
			return err
		}

		return updater.Audit(tx, a)
	})
}

// campaign runs one session. It waits until this updater is elected, leads, and then ends the session, so that
// another updater can lead at once. It returns nil if ctx ends after the start of the session. lost is the time when
// the previous call failed, or zero.
func campaign(ctx context.Context, o Options, lost time.Time) error {
	session, err := o.Store.NewSession(ctx)
	if err != nil {
		return err
	}

	var leadership *keyspace.Leadership
	defer func() {
		// The clean-up must also work after ctx is done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
		defer cancel()
		// A lost leadership is not handed over.
		if leadership != nil && !leadership.HasEnded() {
			noteHandOver(ctx, leadership)
		}
		if err := session.Close(ctx); err != nil {
			slog.Debug("cannot end the session; it will expire", "error", err)
		}
	}()

	// Campaign blocks until this updater is elected.
	leadership, err = session.Campaign(ctx, keys.UpdaterLeader, keyspace.Candidate{})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}

	slog.Info("leading", "version", o.Version)
	o.Metrics.Set(1, leadsMetric)
	defer o.Metrics.Set(0, leadsMetric)

	err = runLeader(ctx, leader{
		Options:     o,
		leadership:  leadership,
		afterOutage: time.Since(lost) < decide.StallGrace,
	})

	slog.Info("no longer leading", "error", err)
	return err
}

// noteHandOver records that this leader gives up its lead, so that `neco status` does not report a missing leader
// at once. It only logs an error.
func noteHandOver(ctx context.Context, leadership *keyspace.Leadership) {
	err := leadership.Update(ctx, func(tx *keyspace.Tx) error {
		return tx.Put(keys.HandedOver, record.HandOver{At: time.Now().UTC()})
	})
	if err != nil {
		slog.Debug("cannot record that another updater can lead", "error", err)
	}
}

// runLeader runs all parts of a leader until ctx or the leadership ends. A part returns early only with an error
// that ends the leadership, so runLeader then also ends the other parts. It returns nil if ctx is done, and
// otherwise the first error.
func runLeader(ctx context.Context, l leader) error {
	leading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := []func(context.Context) error{
		l.runDecisions, l.checkReleases, l.sendAlerts, l.sendHeartbeats, l.sweepStore,
	}
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { cancel(part(leading)) })
	}

	select {
	case <-l.leadership.Done():
		cancel(keyspace.ErrSessionLost)
	case <-leading.Done():
	}

	running.Wait()
	if ctx.Err() != nil {
		return nil
	}

	return context.Cause(leading)
}

// endsLeadership reports whether no later write of this leader can succeed after the error.
func endsLeadership(err error) bool {
	return errors.Is(err, keyspace.ErrSessionLost) || updater.IsStoreGone(err)
}

// docs/how-to/watch-it.md describes each metric.
const (
	leadsMetric      = "neco_updater_leader"
	checksMetric     = "neco_updater_checks_total"
	lastCheckMetric  = "neco_updater_last_check_timestamp_seconds"
	deliveriesMetric = "neco_updater_alerts_total"
)

// startMetrics adds the leader's metrics with the value 0, and the metrics of an empty fleet. So they exist before
// the first event.
func startMetrics(r *metrics.Registry) {
	r.Set(0, leadsMetric)
	r.Set(0, lastCheckMetric)
	for _, result := range []string{"done", "failed"} {
		r.Add(0, checksMetric, "result", result)
		r.Add(0, deliveriesMetric, "result", result)
	}
	measureFleet(r, decide.Snapshot{})
}

// measureFleet replaces all metrics of the fleet with those of the snapshot, so that servers that are gone leave no
// metrics.
func measureFleet(r *metrics.Registry, s decide.Snapshot) {
	if r == nil {
		return
	}

	fleet := metrics.NewRegistry()
	var request record.Request // the running or last one, or zero
	if s.Current != nil {
		request = *s.Current
	}

	fleet.Set(float64(len(s.Servers)), "neco_updater_servers")
	fleet.Set(metrics.BoolValue(s.Current != nil && !request.Ended() && !request.Stop), "neco_updater_running")
	fleet.Set(metrics.BoolValue(request.Stop), "neco_updater_stopped")
	fleet.Set(float64(len(request.Missing)), "neco_updater_missing_servers")
	fleet.Set(float64(s.Degraded.Count()), "neco_updater_degraded")
	fleet.Set(float64(len(s.Refusals())), "neco_updater_refused_releases")
	fleet.Set(metrics.BoolValue(s.Outage() != nil), "neco_updater_no_releases")
	fleet.Set(metrics.BoolValue(s.WithdrawnRelease() != nil), "neco_updater_withdrawn_release")

	noRoom := s.NoRoom(time.Now())
	lacking := 0
	if noRoom != nil {
		lacking = len(noRoom.Servers)
	}
	fleet.Set(float64(lacking), "neco_updater_servers_without_room")
	fleet.Set(1, "neco_updater_version_info", "release", s.Release, "current", request.Version)

	for _, n := range s.Servers {
		lrn := strconv.Itoa(n)
		w := s.Workers[n]
		p, alive := s.Present[n]
		fleet.Set(metrics.BoolValue(alive), "neco_server_present", "lrn", lrn)
		fleet.Set(1, "neco_server_info", "lrn", lrn, "version", p.Version, "sums", p.Sums, "plan", p.Plan)
		fleet.Set(float64(w.Step), "neco_server_step", "lrn", lrn, "name", w.StepName)
		fleet.Set(metrics.UnixSeconds(w.At), "neco_server_step_since_timestamp_seconds", "lrn", lrn)
		fleet.Set(metrics.BoolValue(w.Finished), "neco_server_finished", "lrn", lrn)
	}
	r.Replace(fleet)
}
