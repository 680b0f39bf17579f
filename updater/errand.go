package updater

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/updater/activity"
	"bijou/updater/record"
	"bijou/updater/release"
)

// errand is what a worker is doing on its server, beside its loop, which watches
// over it.
type errand struct {
	cancel context.CancelFunc
	ctx    context.Context // its own: it tells if it was cancelled
	job    Job
	log    *activity.Log // what it is doing just now
	told   record.Activity
	tellAt time.Time
	ended  chan error // buffered: it ends whether or not the loop listens
}

// begin writes down what is begun, and begins it.
func (w *worker) begin(ctx context.Context, t Task) error {
	if err := writeJournal(w.o.Dir, t.Journal); err != nil {
		return w.refuse(ctx, err)
	}
	w.seat.Journal, w.seat.Busy = t.Journal, true
	e := &errand{job: t.Job, log: &activity.Log{}, tellAt: w.clock.now().Add(activityDelay), ended: make(chan error, 1)}
	e.ctx, e.cancel = context.WithCancel(activity.With(ctx, e.log))
	w.errand = e
	slog.Info("begins", "what", t.Why)
	conf, request := w.conf, *w.seat.Current
	go func() { e.ended <- w.do(e.ctx, t, conf, request) }() // done and leave wait for it
	return nil
}

// refuse records that the worker cannot even begin: its disk is full, say.
func (w *worker) refuse(ctx context.Context, err error) error {
	s := *w.seat.Status
	s.Error, s.Message, s.At = true, err.Error(), w.clock.now()
	return w.write(ctx, s)
}

// done writes down how it ended. What was cancelled has not: it is gone on with.
func (w *worker) done(ctx context.Context, err error) error {
	e, j := w.errand, w.seat.Journal
	cancelled := err != nil && e.ctx.Err() != nil
	e.cancel()
	w.errand, w.seat.Busy = nil, false
	if cancelled {
		slog.Info("was cancelled", "what", j.Name)
		return nil
	}
	j.Phase, j.Message, j.WaitedFor, j.At = Done, "", nil, w.clock.now()
	if err != nil {
		j.Phase, j.Message = Failed, err.Error()
	}
	if others, ok := errors.AsType[othersError](err); ok {
		j.WaitedFor = others.servers
	}
	slog.Info("ends", "what", j.Name, "error", err)
	w.o.Metrics.did(err)
	w.seat.Journal = j
	if err := writeJournal(w.o.Dir, j); err != nil && j.Phase == Done {
		slog.Error("what is done will be done again after a restart", "error", err)
	}
	if e.job == Install && j.Phase == Done {
		return w.handOver(ctx)
	}
	return nil
}

// handOver says that another version is to take this worker's place, so that somebody
// misses it if it does not come up.
func (w *worker) handOver(ctx context.Context) error {
	if s := w.seat.handsOver(); s != nil {
		if err := w.write(ctx, *s); err != nil {
			slog.Warn("cannot say that another version takes over", "error", err)
		}
	}
	return ErrHandOver
}

// leave ends what is being done, so that nothing outlives the worker.
func (w *worker) leave() {
	if w.errand != nil {
		w.errand.cancel()
		<-w.errand.ended
	}
}

// do does it. What finds that its request is no more waits to be cancelled, as the
// loop does once it has heard of that, too.
func (w *worker) do(ctx context.Context, t Task, conf record.Config, request record.Request) error {
	if err := w.whole(ctx); err != nil {
		return err
	}
	doing := activity.Begin(ctx, "%s", t.Why)
	defer doing.End()
	err := w.perform(ctx, t, conf, request)
	if errors.Is(err, errStale) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (w *worker) perform(ctx context.Context, t Task, conf record.Config, request record.Request) error {
	if t.Job == Install {
		if err := w.o.Install(ctx, request, conf); err != nil {
			return fmt.Errorf("cannot install %s: %w", t.Version, err)
		}
		return nil
	}
	c := t.Step.Component
	switch {
	case t.Step.Action == release.Stop:
		return w.stop(ctx, c)
	case c.Strategy == release.Rolling:
		return w.roll(ctx, c, request)
	case c.Strategy == release.LeaderOnce:
		return w.bring(ctx, c, request)
	}
	return w.o.Server.Update(ctx, c)
}

// stop stops the component. What the update will need is brought before, so that
// nothing stands still for a download.
func (w *worker) stop(ctx context.Context, c release.Component) error {
	if err := w.o.Server.Prepare(ctx, c); err != nil {
		return err
	}
	return w.o.Server.Stop(ctx, c)
}
