package updater

import (
	"context"
	"reflect"
	"time"
)

// How long something takes before a worker says that it is at it, and how often it looks
// if it is at something else by now.
const (
	activityDelay    = time.Second
	activityInterval = 5 * time.Second
)

// faultError is an error at which other servers are at fault.
type faultError struct {
	error
	servers []int
}

// publishActivity writes what the worker is doing, if that is something else than it has said. That
// it cannot be written now keeps nothing: it is tried again.
func (w *worker) publishActivity(ctx context.Context) {
	e, j := w.running, w.snapshot.Journal
	if e == nil || w.clock.now().Before(e.publishAt) {
		return
	}
	e.publishAt = w.clock.now().Add(activityInterval)
	a, ok := e.log.Current(activityDelay)
	a.Request, a.Attempt, a.Step, a.Since = j.Request, j.Attempt, j.Step, a.Since.UTC().Round(time.Millisecond)
	if !ok || reflect.DeepEqual(a, e.published) {
		return
	}
	written, _ := w.claim.PutIf(ctx, Keys().Current(), w.requestRevision, Keys().Activity(w.o.LRN), a)
	if written {
		e.published = a
	}
}
