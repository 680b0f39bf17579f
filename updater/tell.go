package updater

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"bijou/updater/record"
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

func (e othersError) Unwrap() error { return e.error }

// tell writes what the worker is doing, if that is something else than it has said. That
// it cannot be written now keeps nothing: it is tried again.
func (w *worker) tell(ctx context.Context) {
	e, j := w.errand, w.seat.Journal
	if e == nil || w.clock.now().Before(e.tellAt) {
		return
	}
	e.tellAt = w.clock.now().Add(activityInterval)
	doing, ok := e.log.Current(activityDelay)
	if !ok {
		return
	}
	a := record.Activity{
		Request: j.Request, Attempt: j.Attempt, Step: j.Step,
		Message: doing.Message, Kind: doing.Kind, Servers: doing.Servers, Since: doing.Since.UTC().Round(time.Millisecond),
	}
	if reflect.DeepEqual(a, e.told) {
		return
	}
	written, err := w.claim.PutIf(ctx, Keys().Current(), w.asked, Keys().Activity(w.o.LRN), a)
	if err != nil {
		slog.Debug("cannot say what is being done", "error", err)
	}
	if written {
		e.told = a
	}
}
