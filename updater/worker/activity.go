package worker

import (
	"context"
	"reflect"
	"time"

	"bijou/updater/keys"
	"bijou/updater/record"
)

const (
	// activityDelay is how long an activity must last before the worker publishes it.
	activityDelay = time.Second
	// activityInterval is how often the worker publishes a changed activity.
	activityInterval = 5 * time.Second
)

// publishActivity publishes the running task's activity, if it has changed since it was last published.
func (w *worker) publishActivity(ctx context.Context) {
	e := w.running
	j := w.snapshot.Journal
	if e == nil || w.clock.Now().Before(e.publishAt) {
		return
	}

	e.publishAt = w.clock.Now().Add(activityInterval)
	a, ok := e.log.Current(activityDelay)
	a.Request = j.Request
	a.Attempt = j.Attempt
	a.Step = j.Step
	a.Since = a.Since.UTC().Round(time.Millisecond)
	a.Message = record.Shorten(a.Message, record.MaxMessage)
	if !ok || reflect.DeepEqual(a, e.published) {
		return
	}

	// An error is ignored: publishActivity is soon called again, and then finds that a is not published yet.
	written, _ := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Activity(w.o.LRN), a)
	if written {
		e.published = a
	}
}
