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

// runningTask is what a worker is doing on its server, beside its loop, which watches
// over it.
type runningTask struct {
	cancel    context.CancelFunc
	ctx       context.Context // its own: it tells if it was cancelled
	job       Job
	log       *activity.Log // what it is doing just now
	published record.Activity
	publishAt time.Time
	ended     chan error // buffered: it ends whether or not the loop listens
}

// startTask writes down what is begun, and begins it.
func (w *worker) startTask(ctx context.Context, t Task) error {
	if err := writeJournal(w.o.Dir, t.Journal); err != nil {
		return w.recordStartFailure(ctx, err)
	}
	w.snapshot.Journal, w.snapshot.Busy = t.Journal, true
	e := &runningTask{job: t.Job, log: &activity.Log{}, publishAt: w.clock.now().Add(activityDelay), ended: make(chan error, 1)}
	e.ctx, e.cancel = context.WithCancel(activity.With(ctx, e.log))
	w.running = e
	slog.Info("begins", "what", t.Why)
	conf, request := w.config, *w.snapshot.Current
	go func() { e.ended <- w.runTask(e.ctx, t, conf, request) }() // done and leave wait for it
	return nil
}

// recordStartFailure records that the worker cannot even begin: its disk is full, say.
func (w *worker) recordStartFailure(ctx context.Context, err error) error {
	s := *w.snapshot.Status
	s.Error, s.Message, s.At = true, err.Error(), w.clock.now()
	return w.writeStatus(ctx, s)
}

// finishTask writes down how it ended. What was cancelled has not: it is gone on with.
func (w *worker) finishTask(ctx context.Context, err error) error {
	e, j := w.running, w.snapshot.Journal
	cancelled := err != nil && e.ctx.Err() != nil
	e.cancel()
	w.running, w.snapshot.Busy = nil, false
	if cancelled {
		slog.Info("was cancelled", "what", j.Name)
		return nil
	}
	j.Phase, j.Message, j.WaitedFor, j.At = Done, "", nil, w.clock.now()
	if err != nil {
		j.Phase, j.Message = Failed, err.Error()
	}
	if others, ok := errors.AsType[faultError](err); ok {
		j.WaitedFor = others.servers
	}
	slog.Info("ends", "what", j.Name, "error", err)
	w.o.Metrics.countTask(err)
	w.snapshot.Journal = j
	if err := writeJournal(w.o.Dir, j); err != nil && j.Phase == Done {
		slog.Error("what is done will be done again after a restart", "error", err)
	}
	if e.job == Install && j.Phase == Done {
		return w.handOver(ctx)
	}
	return nil
}

// handOverTimeout says that another version is to take this worker's place, so that somebody
// misses it if it does not come up.
func (w *worker) handOver(ctx context.Context) error {
	if s := w.snapshot.handOverRecord(); s != nil {
		if err := w.writeStatus(ctx, *s); err != nil {
			slog.Warn("cannot say that another version takes over", "error", err)
		}
	}
	return ErrHandOver
}

// stopTask ends what is being done, so that nothing outlives the worker.
func (w *worker) stopTask() {
	if w.running != nil {
		w.running.cancel()
		<-w.running.ended
	}
}

// runTask does it. What finds that its request is no more waits to be cancelled, as the
// loop does once it has heard of that, too.
func (w *worker) runTask(ctx context.Context, t Task, conf record.Config, request record.Request) error {
	if err := w.awaitInstallation(ctx); err != nil {
		return err
	}
	doing := activity.Begin(ctx, "%s", t.Why)
	defer doing.End()
	err := w.runJob(ctx, t, conf, request)
	if errors.Is(err, errStale) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (w *worker) runJob(ctx context.Context, t Task, conf record.Config, request record.Request) error {
	if t.Job == Install {
		if err := w.o.Install(ctx, request, conf); err != nil {
			return fmt.Errorf("cannot install %s: %w", t.Version, err)
		}
		return nil
	}
	c := t.Step.Component
	switch {
	case t.Step.Action == release.Stop:
		return w.stopComponent(ctx, c)
	case c.Strategy == release.Rolling:
		return w.runRolling(ctx, c, request)
	case c.Strategy == release.LeaderOnce:
		return w.runLeaderOnce(ctx, c, request)
	}
	return w.o.Server.Update(ctx, c)
}

// stopComponent stops the component. What the update will need is brought before, so that
// nothing stands still for a download.
func (w *worker) stopComponent(ctx context.Context, c release.Component) error {
	if err := w.o.Server.Prepare(ctx, c); err != nil {
		return err
	}
	return w.o.Server.Stop(ctx, c)
}
