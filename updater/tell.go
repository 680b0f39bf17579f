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

// othersError is an error at which other servers are at fault.
type othersError struct {
	error
	servers []int
}

// tell writes what the worker is doing, if that is something else than it has said. That
// it cannot be written now keeps nothing: it is tried again.
func (w *worker) tell(ctx context.Context) {
	e, j := w.errand, w.seat.Journal
	if e == nil || w.clock.now().Before(e.tellAt) {
		return
	}
	e.tellAt = w.clock.now().Add(activityInterval)
	a, ok := e.log.Current(activityDelay)
	a.Request, a.Attempt, a.Step, a.Since = j.Request, j.Attempt, j.Step, a.Since.UTC().Round(time.Millisecond)
	if !ok || reflect.DeepEqual(a, e.told) {
		return
	}
	written, _ := w.claim.PutIf(ctx, Keys().Current(), w.asked, Keys().Activity(w.o.LRN), a)
	if written {
		e.told = a
	}
}
