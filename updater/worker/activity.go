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

// publishActivity publishes the running task's activity, if it has changed since it was last published. It
// does nothing if no task runs, or before the task's publishAt.
func (w *worker) publishActivity(ctx context.Context) {
	task := w.running
	j := w.snapshot.Journal
	if task == nil || w.clock.Now().Before(task.publishAt) {
		return
	}

	task.publishAt = w.clock.Now().Add(activityInterval)
	a, ok := task.log.Current(activityDelay)
	a.Request = j.Request
	a.Attempt = j.Attempt
	a.Step = j.Step
	a.Since = a.Since.UTC().Round(time.Millisecond)
	a.Message = record.Shorten(a.Message, record.MaxMessage)
	if !ok || reflect.DeepEqual(a, task.published) {
		return
	}

	// If the request has changed, nothing is written. Then, and after an error, a later call finds that a is
	// not published yet.
	written, _ := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Activity(w.o.LRN), a)
	if written {
		task.published = a
	}
}
