// Package worker is the side of an update that each boot server's neco-worker has: it installs
// the request's version, and does its steps, each when all servers have come to it. NextTask
// decides what it does next, NextRolling and NextOnce what it does within a step that servers
// must coordinate. They are pure functions over snapshots. Run is the loop around them.
//
// It does not know how services are run or packages installed: that is its Server's. Only
// package multicall may import it.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
	"bijou/updater/activity"
	"bijou/updater/record"
	"bijou/updater/release"
)

// runningTask is the work of a worker on its server, in a goroutine beside the loop,
// which watches over it.
type runningTask struct {
	cancel    context.CancelFunc
	ctx       context.Context // its own, to see whether it was cancelled
	job       Job
	log       *activity.Log // the activity that is published
	published record.Activity
	publishAt time.Time
	ended     chan error // buffered: it ends whether or not the loop listens
}

// startTask writes the journal, and then starts the task.
func (w *worker) startTask(ctx context.Context, t Task) error {
	if err := writeJournal(w.o.Dir, t.Journal); err != nil { // the disk is full, say
		s := *w.snapshot.Status
		s.Error = true
		s.Message = osutil.Explain(err)
		s.At = w.clock.Now()
		return w.writeStatus(ctx, s)
	}

	w.snapshot.Journal = t.Journal
	w.snapshot.Busy = true
	e := &runningTask{
		job:       t.Job,
		log:       &activity.Log{},
		publishAt: w.clock.Now().Add(activityDelay),
		ended:     make(chan error, 1),
	}

	e.ctx, e.cancel = context.WithCancel(activity.With(ctx, e.log))
	w.running = e
	slog.Info("begins", "what", t.Why)
	conf := w.config
	request := *w.snapshot.Current
	go func() { e.ended <- w.runTask(e.ctx, t, conf, request) }() // finishTask and stopTask wait for it
	return nil
}

// finishTask writes the result of the running task to the journal. A cancelled task has none, since it will
// be continued.
func (w *worker) finishTask(ctx context.Context, err error) error {
	e := w.running
	j := w.snapshot.Journal
	cancelled := err != nil && e.ctx.Err() != nil
	e.cancel()
	w.running = nil
	w.snapshot.Busy = false
	if cancelled {
		slog.Info("was cancelled", "what", j.Name)
		return nil
	}

	j.Phase = Done
	j.Message = ""
	j.WaitedFor = nil
	j.At = w.clock.Now()
	if err != nil {
		j.Phase = Failed
		j.Message = osutil.Explain(err)
	}

	if others, ok := errors.AsType[faultError](err); ok {
		j.WaitedFor = others.servers
	}
	slog.Info("ends", "what", j.Name, "error", err)
	w.o.Metrics.Add(1, tasksMetric, "result", j.Phase)

	w.snapshot.Journal = j
	if err := writeJournal(w.o.Dir, j); err != nil && j.Phase == Done {
		slog.Error("what is done will be done again after a restart", "error", err)
	}
	if e.job == Install && j.Phase == Done {
		return w.handOver(ctx)
	}

	return nil
}

// handOver returns ErrHandOver. It first records that a different version will take over, so that the
// leader notices if that does not start.
func (w *worker) handOver(ctx context.Context) error {
	if s := w.snapshot.HandOverRecord(); s != nil {
		if err := w.writeStatus(ctx, *s); err != nil {
			slog.Warn("cannot say that another version takes over", "error", err)
		}
	}
	return ErrHandOver
}

func (w *worker) stopTask() {
	if w.running != nil {
		w.running.cancel()
		<-w.running.ended
	}
}

// runTask runs the task. If the task was cancelled because the request has changed, runTask blocks until
// the loop, too, knows of the change and cancels it.
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

// runJob does one step of an update on this host.
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
		if err := w.o.Server.Prepare(ctx, c); err != nil { // so that nothing stands still for a download
			return err
		}
		return w.o.Server.Stop(ctx, c)
	case c.Strategy == release.Rolling:
		return w.runRolling(ctx, c, request)
	case c.Strategy == release.LeaderOnce:
		return w.runLeaderOnce(ctx, c, request)
	}

	return w.o.Server.Update(ctx, c)
}

// installationTimeout bounds for how long a worker begins nothing because a former
// installation is being finished.
const installationTimeout = time.Minute

// keepInstallationFinished runs beside the loop: the script of a package may have started this
// worker, and wait for it.
func (w *worker) keepInstallationFinished(ctx context.Context) error {
	if w.o.FinishInstallation != nil {
		if err := w.o.FinishInstallation(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("what was installed before may be left half-way, or lie about", "error", err)
		}
	}

	close(w.installationDone)
	<-ctx.Done()
	return nil
}

// awaitInstallation waits for a running installation, whose package script could end tasks and change their
// findings. If that takes too long, the update goes on.
func (w *worker) awaitInstallation(ctx context.Context) error {
	select {
	case <-w.installationDone:
	case <-time.After(installationTimeout):
		slog.Warn("an installation of before is still being finished; goes on beside it")
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// The phases of a Journal.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// Journal is written to the worker's own disk before it acts, and after. Whatever kills
// it, it goes on from there.
type Journal struct {
	Request int       `json:"request"`
	Started time.Time `json:"started"` // the request's, since another store counts anew
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"` // 0: installing the release
	Name    string    `json:"name"`
	Phase   string    `json:"phase"`
	Message string    `json:"message,omitempty"` // why it failed
	// WaitedFor are the servers at fault, if it is not this one.
	WaitedFor []int     `json:"waited-for,omitempty"`
	At        time.Time `json:"at"` // when it came to this phase
}

// Identity tells one step's journal from the next.
func (j Journal) Identity() any { return [3]int{j.Request, j.Attempt, j.Step} }

func journalFile(dir string) string { return filepath.Join(dir, "journal.json") }

func readJournal(dir string) (j Journal, err error) {
	_, err = jsonfile.Read(journalFile(dir), &j)
	if err != nil {
		return j, fmt.Errorf("cannot read the journal: %w", err)
	}

	return j, nil
}

func writeJournal(dir string, j Journal) error {
	if err := jsonfile.Write(journalFile(dir), j); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}

	return nil
}

// lockFolder locks the directory, so that this process is its only worker until the process ends.
func lockFolder(dir string) (*os.File, error) {
	if err := osutil.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
	}

	f, err := osutil.TryLockFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR)
	if errors.Is(err, osutil.ErrLocked) {
		return nil, fmt.Errorf("cannot lock %s: another worker works there", dir)
	}
	if err != nil {
		return f, fmt.Errorf("cannot lock the worker's folder: %w", err)
	}

	return f, nil
}
