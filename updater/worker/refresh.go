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

func (w *worker) refresh(ctx context.Context) error {
	old := w.applyChanges(w.feed.Take())
	if old == (staleParts{}) {
		return nil
	}
	return w.view(ctx, func(v *keyspace.View) error { return w.reload(v, old) })
}

// staleParts names the parts that a worker has to read again.
type staleParts struct{ all, request, config bool }

// applyChanges applies the changes to the snapshot, and returns the parts that must be read again.
func (w *worker) applyChanges(n keyspace.ChangeSet) (old staleParts) {
	old.all = n.All
	for _, c := range n.Changes {
		config := strings.HasPrefix(c.Key, keys.AllConfig)
		old.config = old.config || config
		old.request = old.request || !config && !w.applyChange(c)
	}

	return old
}

// applyChange applies a change of the request or its gate. It returns false if it cannot; then both must be
// read again. Most changes that a worker gets are gates.
func (w *worker) applyChange(c keyspace.Change) bool {
	switch {
	case c.Revision <= w.readRevision:
		return true
	case !c.IsComplete():
		return false
	case c.Key == keys.Gate:
		w.snapshot.Gate = record.Gate{}
		return c.Deleted || keyspace.DecodeInto(c.KeyValue, &w.snapshot.Gate) == nil
	case c.Deleted:
		w.snapshot.Current = nil
		w.requestRevision = 0
		return true
	}

	var r record.Request
	w.snapshot.Current = &r
	w.requestRevision = c.Revision
	return keyspace.DecodeInto(c.KeyValue, &r) == nil // else reading it says what is wrong
}

// reload reads everything again. It reads the worker's own record only at the start, and after a gap in the
// changes, since nobody else writes it.
func (w *worker) reload(v *keyspace.View, old staleParts) (err error) {
	if err := w.readRequest(v); err != nil {
		return err
	}

	if old.all {
		if err := w.readOwnStatus(v); err != nil {
			return err
		}
	}

	if old.all || old.config {
		if w.config, err = updater.LoadConfig(v); err != nil {
			return err
		}
		w.snapshot.Timeout = w.config.WorkerTimeout
		w.surveyInterval.Store(int64(w.config.SurveyInterval))
		return w.o.Server.Configure(w.config)
	}

	return nil
}

// readRequest reads the current update and its gate.
func (w *worker) readRequest(v *keyspace.View) (err error) {
	var r record.Request
	if w.requestRevision, err = v.GetAt(keys.Current, &r); err != nil {
		return err
	}

	w.snapshot.Gate = record.Gate{}
	w.snapshot.Current = nil
	if w.requestRevision != 0 {
		w.snapshot.Current = &r
	}

	if _, err = v.GetAt(keys.Gate, &w.snapshot.Gate); err != nil {
		return err
	}
	w.readRevision, err = v.Revision()
	return err
}

func (w *worker) readOwnStatus(v *keyspace.View) error {
	s, err := updater.ReadKey[record.Status](v, keys.Worker(w.o.LRN))
	if s != nil {
		s.At = w.clock.Clamp(s.At)
	}
	w.snapshot.Status = s
	return err
}

// retryStore calls f until it succeeds, and takes note of an outage of the store.
func (w *worker) retryStore(ctx context.Context, f func() error) error {
	began := time.Now()
	tries := 0
	err := retryStore(ctx, func() error {
		tries++
		return f()
	})
	if err != nil {
		return err
	}

	if tries > 1 || time.Since(began) > firstLookDelay {
		w.noteOutageEnd()
	}

	return nil
}

func (w *worker) noteOutageEnd() {
	now := w.clock.Now()
	w.storeBackAt.Store(&now)
}

// view does what Space.View does, and retries while the store is away.
func (w *worker) view(ctx context.Context, f func(v *keyspace.View) error) error {
	return w.retryStore(ctx, func() error { return w.o.Store.View(ctx, f) })
}

// retryStore calls f until the store answers. It returns errors that f itself decides, and the error of a
// store that is gone for good.
func retryStore(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, errStale) || errors.Is(err, keyspace.ErrSessionLost) ||
			errors.Is(err, keyspace.ErrClaimed) || errors.Is(err, keyspace.ErrClaimLost) {
			return err
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}
}
