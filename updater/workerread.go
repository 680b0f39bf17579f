package updater

import (
	"context"
	"strings"

	"bijou/state"
	"bijou/updater/record"
)

// refresh reads what has changed, as far as that was not told.
func (w *worker) refresh(ctx context.Context) error {
	old := w.outdated(w.sight.changed())
	if old == (outdated{}) {
		return nil
	}
	return w.persist(ctx, func() error {
		return w.o.Store.View(ctx, func(v *state.KeyView) error { return w.read(v, old) })
	})
}

// outdated is what a worker has to read again.
type outdated struct{ all, request, config bool }

// outdated takes the news.
func (w *worker) outdated(n news) (old outdated) {
	old.all = n.all
	for _, c := range n.changes {
		config := strings.HasPrefix(c.Key, Keys().AllConfig())
		old.config = old.config || config
		old.request = old.request || !config && !w.take(c)
	}
	return old
}

// take is told a change of the request or its gate, and says if that will do. Gates
// are most of what a worker hears.
func (w *worker) take(c state.KeyChange) bool {
	switch {
	case c.Revision <= w.readAt:
		return true
	case !c.Told():
		return false
	case c.Key == Keys().Gate():
		w.seat.Gate = record.Gate{}
		return c.Deleted || c.Decode(&w.seat.Gate) == nil
	case c.Deleted:
		w.seat.Current, w.asked = nil, 0
		return true
	}
	var r record.Request
	w.seat.Current, w.asked = &r, c.Revision
	return c.Decode(&r) == nil // else reading it says what is wrong
}

// read reads the request and its gate; the configuration and its own record when
// there is reason to. Only this worker writes its record, so that it knows that by
// heart.
func (w *worker) read(v *state.KeyView, old outdated) (err error) {
	if err := w.readRequest(v); err != nil {
		return err
	}
	if old.all {
		if err := w.recall(v); err != nil {
			return err
		}
	}
	if old.all || old.config {
		if w.conf, err = LoadConfig(v); err != nil {
			return err
		}
		w.seat.Timeout = w.conf.WorkerTimeout
		w.surveyInterval.Store(int64(w.conf.SurveyInterval))
		return w.o.Server.Configure(w.conf)
	}
	return nil
}

// readRequest reads the request and its gate.
func (w *worker) readRequest(v *state.KeyView) (err error) {
	var r record.Request
	if w.asked, err = v.GetAt(Keys().Current(), &r); err != nil {
		return err
	}
	if w.seat.Current = nil; w.asked != 0 {
		w.seat.Current = &r
	}
	w.seat.Gate = record.Gate{}
	if _, err = v.GetAt(Keys().Gate(), &w.seat.Gate); err != nil {
		return err
	}
	w.readAt, err = v.Revision()
	return err
}

// recall reads its own record.
func (w *worker) recall(v *state.KeyView) error {
	s, err := LoadWorker(v, w.o.LRN)
	if s != nil {
		s.At = w.clock.within(s.At)
	}
	w.seat.Status = s
	return err
}
