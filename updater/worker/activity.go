package worker

import (
	"context"
	"reflect"
	"time"

	"bijou/updater/keys"
	"bijou/updater/record"
)

// How long something takes before a worker reports it as its activity, and how often it
// looks whether that has changed.
const (
	activityDelay    = time.Second
	activityInterval = 5 * time.Second
)

// publishActivity publishes the worker's activity. It ignores failures, since it is called again soon.
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

	written, _ := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Activity(w.o.LRN), a)
	if written {
		e.published = a
	}
}
