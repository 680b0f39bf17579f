package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// refresh brings the snapshot up to date. It applies the changes since the last call, and reads from the
// store only the parts to which the changes cannot be applied.
func (w *worker) refresh(ctx context.Context) error {
	stale := w.applyChanges(w.feed.Take())
	if stale == (staleParts{}) {
		return nil
	}
	return w.view(ctx, func(v *keyspace.View) error { return w.reload(v, stale) })
}

// staleParts names the parts of the worker's state that must be read again.
type staleParts struct{ all, request, config bool }

// applyChanges applies the changes to the snapshot, and returns the parts that must be read again.
func (w *worker) applyChanges(news keyspace.ChangeSet) (stale staleParts) {
	stale.all = news.All
	for _, c := range news.Changes {
		isConfig := strings.HasPrefix(c.Key, keys.AllConfig)
		switch {
		case isConfig:
			stale.config = true
		case !stale.request:
			// If the request must be read again, that read also finds its later changes.
			stale.request = !w.applyChange(c)
		}
	}

	return stale
}

// applyChange applies a change of the request or the gate without a read. Most changes that a worker gets are
// changes of the gate. It returns false if it cannot apply the change, and both must be read again.
func (w *worker) applyChange(c keyspace.Change) bool {
	switch {
	case c.Revision <= w.readRevision:
		// The snapshot was read after this change.
		return true
	case !c.IsComplete():
		// The change does not contain the new value.
		return false
	case c.Key == keys.Gate:
		w.snapshot.Gate = record.Gate{}
		return c.Deleted || keyspace.DecodeInto(c.KeyValue, &w.snapshot.Gate) == nil
	case c.Deleted:
		// The feed follows only the gate, the configuration and the request, so the request was deleted.
		w.snapshot.Current = nil
		w.requestRevision = 0
		return true
	}

	var r record.Request
	w.snapshot.Current = &r
	w.requestRevision = c.Revision
	// If this fails, the request is read again, and that read returns the error.
	return keyspace.DecodeInto(c.KeyValue, &r) == nil
}

// reload reads the request and its gate. It also reads the worker's own status, and reads and applies the
// configuration, if these parts are stale. The status is stale only at the start or after a gap in the
// changes, since only this worker writes it.
func (w *worker) reload(v *keyspace.View, stale staleParts) (err error) {
	// The request is always read, so that it has the same revision as the other parts.
	if err := w.readRequest(v); err != nil {
		return err
	}

	if stale.all {
		if err := w.readOwnStatus(v); err != nil {
			return err
		}
	}

	if stale.all || stale.config {
		if w.config, err = updater.LoadConfig(v); err != nil {
			return err
		}
		w.snapshot.Timeout = w.config.WorkerTimeout
		w.surveyInterval.Store(int64(w.config.SurveyInterval))
		return w.o.Server.Configure(w.config)
	}

	return nil
}

// readRequest reads the request and the gate into the snapshot. It notes at which revision the request was
// written and at which both were read.
func (w *worker) readRequest(v *keyspace.View) (err error) {
	var r record.Request
	if w.requestRevision, err = v.GetAt(keys.Current, &r); err != nil {
		return err
	}

	w.snapshot.Gate = record.Gate{}
	w.snapshot.Current = nil
	// The revision is 0 if there is no request.
	if w.requestRevision != 0 {
		w.snapshot.Current = &r
	}

	if _, err = v.GetAt(keys.Gate, &w.snapshot.Gate); err != nil {
		return err
	}
	w.readRevision, err = v.Revision()
	return err
}

// readOwnStatus reads this worker's record into the snapshot. The host's clock may have been set after the record
// was written. So if the record's time is not between the start of the worker's clock and now, the nearer of the
// two replaces it.
func (w *worker) readOwnStatus(v *keyspace.View) error {
	s, err := updater.ReadKey[record.Status](v, keys.Worker(w.o.LRN))
	if err != nil {
		return err
	}
	if s != nil {
		s.At = w.clock.Clamp(s.At)
	}
	w.snapshot.Status = s
	return nil
}

// retryNotingOutage does the same as retryStore. If f has succeeded, but needed several tries or more than
// firstLookDelay, it also notes that an outage of the store has just ended.
func (w *worker) retryNotingOutage(ctx context.Context, f func() error) error {
	began := time.Now()
	tries := 0
	err := retryStore(ctx, func() error {
		tries++
		return f()
	})
	if err != nil {
		return err
	}

	wasOut := tries > 1 || time.Since(began) > firstLookDelay
	if wasOut {
		w.noteOutageEnd()
	}

	return nil
}

// noteOutageEnd notes that an outage of the store ends now.
func (w *worker) noteOutageEnd() {
	now := w.clock.Now()
	w.storeBackAt.Store(&now)
}

// view does the same as Space.View, but retries while the store cannot be reached.
func (w *worker) view(ctx context.Context, f func(v *keyspace.View) error) error {
	return w.retryNotingOutage(ctx, func() error { return w.o.Store.View(ctx, f) })
}

// retryStore calls f until it succeeds, and waits for a moment before each retry. It returns errors that a
// retry cannot fix: errStale, a lost session, a claim that was lost or that another host holds, and a store
// that was deleted or closed. It gives up if ctx is done.
func retryStore(ctx context.Context, f func() error) error {
	for {
		err := f()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errStale), errors.Is(err, keyspace.ErrSessionLost),
			errors.Is(err, keyspace.ErrClaimed), errors.Is(err, keyspace.ErrClaimLost):
			return err
		}

		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}
}
