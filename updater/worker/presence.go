package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"bijou/state/backoff"
	"bijou/state/digest"
	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

func (w *worker) ownPresence() record.Presence {
	by := w.o.Claimant
	return record.Presence{Version: w.o.Version, Digests: w.o.digests(), Server: by.Host + ":" + by.Folder, Host: by.Name, Package: w.o.Package}
}

// keepPresence shows others that the worker lives, and its version. The key is bound to the
// process's session, and is written again when that is lost, or when the key was removed
// because the server was unregistered and registered again.
func (w *worker) keepPresence(ctx context.Context) error {
	defer w.closeSession(ctx)
	for back := false; ctx.Err() == nil; back = true {
		s, err := w.process.Session(ctx)
		if err == nil {
			if back {
				w.noteOutageEnd() // a session that was lost shows that the store was away
				w.feed.Invalidate()
			}
			err = w.keepPublished(ctx, s)
		}
		if ctx.Err() != nil || err == nil || errors.Is(err, keyspace.ErrSessionLost) {
			continue
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) closeSession(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	_ = w.process.Close(ctx)
}

func (w *worker) keepPublished(ctx context.Context, s *keyspace.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel()
	for {
		revision, stands, err := w.checkPublished(ctx, s)
		switch {
		case err != nil:
		case stands:
			err = w.o.Store.Await(ctx, revision, keyspace.Below(keys.Presence(w.o.LRN)))
		default:
			err = w.publishPresence(ctx, s)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *worker) checkPublished(ctx context.Context, s *keyspace.Session) (revision int64, stands bool, err error) {
	err = w.o.Store.View(ctx, func(v *keyspace.View) error {
		seen, err := updater.ReadKey[record.Presence](v, keys.Presence(w.o.LRN))
		if err != nil {
			return err
		}
		stands = seen != nil && *seen == w.ownPresence() && w.process.IsAnnounced(s)
		revision, err = v.Revision()
		return err
	})
	return revision, stands, err
}

func (w *worker) publishPresence(ctx context.Context, s *keyspace.Session) error {
	err := w.claim.Update(ctx, func(tx *keyspace.Tx) error {
		return tx.PutLeased(keys.Presence(w.o.LRN), w.ownPresence(), s)
	})
	if err == nil {
		w.process.MarkAnnounced(s)
		w.ready.Do(w.o.reportReady)
	}
	return err
}

func (o Options) reportReady() {
	if o.Ready != nil {
		o.Ready()
	}
}

// How long something takes before a worker reports it as its activity, and how often it
// looks whether that has changed.
const (
	activityDelay    = time.Second
	activityInterval = 5 * time.Second
)

// faultError is an error that other servers are at fault for.
type faultError struct {
	error
	servers []int
}

// publishActivity does nothing about a failure: it is called again soon.
func (w *worker) publishActivity(ctx context.Context) {
	e, j := w.running, w.snapshot.Journal
	if e == nil || w.clock.Now().Before(e.publishAt) {
		return
	}
	e.publishAt = w.clock.Now().Add(activityInterval)
	a, ok := e.log.Current(activityDelay)
	a.Request, a.Attempt, a.Step, a.Since = j.Request, j.Attempt, j.Step, a.Since.UTC().Round(time.Millisecond)
	a.Message = record.Shorten(a.Message, record.MaxMessage)
	if !ok || reflect.DeepEqual(a, e.published) {
		return
	}
	written, _ := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Activity(w.o.LRN), a)
	if written {
		e.published = a
	}
}

// claimInterval is how often a worker whose LRN another server has looks at the claim,
// besides being told.
const claimInterval = time.Minute

// takeClaim blocks while another server has the LRN: only an operator can say that that
// one will not come back.
func takeClaim(ctx context.Context, o Options) (claim *keyspace.Claim, err error) {
	key := keys.Claim(o.LRN)
	for said := false; ; {
		err := retryStore(ctx, func() (err error) {
			claim, err = o.Store.TakeClaim(ctx, keyspace.ClaimTarget{Key: key, Presence: keys.Presence(o.LRN)}, o.Claimant)
			return err
		})
		if !errors.Is(err, keyspace.ErrClaimed) {
			return claim, err
		}
		if !said {
			if err := o.alertTwin(ctx, err); err != nil {
				return nil, err
			}
			said = true
		}
		o.awaitClaim(ctx, key)
	}
}

func (o Options) awaitClaim(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, claimInterval)
	defer cancel()
	revision, err := keyspace.Read(ctx, o.Store, (*keyspace.View).Revision)
	if err == nil {
		err = o.Store.Await(ctx, revision, keyspace.Below(key))
	}
	if err != nil {
		_ = backoff.Sleep(ctx, updater.RetryInterval)
	}
}

// alertTwin writes one alert for each pair of servers: its ID is made of both.
func (o Options) alertTwin(ctx context.Context, why error) error {
	message := fmt.Sprintf("two servers go by LRN %d: %s, which came later, does not work: %v", o.LRN, cmp.Or(o.Claimant.Name, "another"), why)
	slog.Error(message, "hint", fmt.Sprintf("if the other is gone for good: neco bootserver remove %d, then add it again", o.LRN))
	o.reportReady()
	return retryStore(ctx, func() error {
		return o.Store.Update(ctx, func(tx *keyspace.Tx) error {
			h, _, err := tx.ClaimHolder(keys.Claim(o.LRN))
			if err != nil {
				return err
			}
			a := record.Alert{
				ID: fmt.Sprintf("twin-%d-%s-%s", o.LRN, hashHolder(h), hashHolder(o.Claimant.Holder)), Kind: record.AlertTwin,
				Servers: []int{o.LRN}, Message: message, At: time.Now().UTC(),
			}
			return tx.Put(keys.Alert(a.ID), a)
		})
	})
}

func hashHolder(h keyspace.Holder) string { return digest.Of([]byte(h.Host + ":" + h.Folder))[:12] }

// docs/monitoring.md says what each metric is.
const (
	stepMetric  = "neco_worker_step"
	busyMetric  = "neco_worker_busy"
	tasksMetric = "neco_worker_steps_total"
)

func measureSnapshot(r *metrics.Registry, s Snapshot) {
	step := 0
	if s.Current != nil && s.Status != nil && s.Status.IsFor(*s.Current) && !s.Status.Finished {
		step = s.Status.Step
	}
	r.Set(float64(step), stepMetric)
	r.Set(metrics.BoolValue(s.Busy), busyMetric)
	r.Add(0, tasksMetric, "result", Done)
	r.Add(0, tasksMetric, "result", Failed)
}
