// Package worker implements the neco-worker of each boot server. The worker installs the request's version,
// and runs each step of the update after all servers have reached that step. NextTask decides on the next
// task. NextRolling and NextOnce decide on the next move within steps that servers must coordinate. These
// functions are pure. Run is the loop that calls them.
//
// The package does not run services or install packages itself. It calls a [Server] for that.
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

// runningTask is the worker's task on its server. It runs in a separate goroutine, which the loop watches.
type runningTask struct {
	cancel    context.CancelFunc
	ctx       context.Context // shows whether the task was cancelled
	job       Job
	log       *activity.Log   // the task's activities
	published record.Activity // the activity that was last published
	publishAt time.Time       // when to publish the activity again
	ended     chan error      // buffered, so that the goroutine can end even if the loop does not listen
}

// startTask writes the journal, and then starts the task in a separate goroutine. If it cannot write the
// journal, it instead records the error in the worker's status.
func (w *worker) startTask(ctx context.Context, t Task) error {
	// Without a journal, for example if the disk is full, the task cannot begin. The update stops with this
	// error.
	if err := writeJournal(w.o.Dir, t.Journal); err != nil {
		s := *w.snapshot.Status
		s.Error = true
		s.Message = osutil.Explain(err)
		s.At = w.clock.Now()
		return w.writeStatus(ctx, s)
	}

	w.snapshot.Journal = t.Journal
	w.snapshot.Busy = true
	running := &runningTask{
		job:       t.Job,
		log:       &activity.Log{},
		publishAt: w.clock.Now().Add(activityDelay),
		ended:     make(chan error, 1),
	}

	running.ctx, running.cancel = context.WithCancel(activity.With(ctx, running.log))
	w.running = running
	slog.Info("begins", "what", t.Why)
	// The task gets copies, since the loop may change the originals.
	conf := w.config
	request := *w.snapshot.Current
	// The methods wait and stopTask receive the result.
	go func() { running.ended <- w.runTask(running.ctx, t, conf, request) }()
	return nil
}

// finishTask writes the result of the running task, which has ended with err, to the journal. It writes
// nothing for a cancelled task, whose journal stays in the phase Running. After a successful installation,
// finishTask returns ErrHandOver. Otherwise it returns nil, even if it cannot write the journal.
func (w *worker) finishTask(ctx context.Context, err error) error {
	running := w.running
	j := w.snapshot.Journal
	// A task that has succeeded in spite of its cancellation is done. The check comes before running.cancel,
	// which ends the context of every task.
	cancelled := err != nil && running.ctx.Err() != nil
	running.cancel()
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

	if fault, ok := errors.AsType[faultError](err); ok {
		j.WaitedFor = fault.servers
	}
	slog.Info("ends", "what", j.Name, "error", err)
	w.o.Metrics.Add(1, tasksMetric, "result", j.Phase)

	w.snapshot.Journal = j
	// Without a result in the journal, the task runs again after a restart. For a failed task, that is
	// harmless.
	if err := writeJournal(w.o.Dir, j); err != nil && j.Phase == Done {
		slog.Error("cannot record a finished task, which will run again after a restart", "error", err)
	}
	if running.job == Install && j.Phase == Done {
		return w.handOver(ctx)
	}

	return nil
}

// handOver records that a different version will take over, so that the leader notices if that version does not
// start. It always returns ErrHandOver.
func (w *worker) handOver(ctx context.Context) error {
	if s := w.snapshot.HandOverRecord(); s != nil {
		if err := w.writeStatus(ctx, *s); err != nil {
			slog.Warn("cannot record that a different version takes over", "error", err)
		}
	}
	return ErrHandOver
}

// stopTask cancels the running task, if there is one, and waits until it has ended.
func (w *worker) stopTask() {
	if w.running != nil {
		w.running.cancel()
		<-w.running.ended
	}
}

// runTask runs the task. Before that, it waits for a previous installation, for at most installationTimeout. If
// the task finds that the request has changed, runTask blocks until the loop also notices the change and cancels
// the task.
func (w *worker) runTask(ctx context.Context, t Task, conf record.Config, request record.Request) error {
	if err := w.awaitInstallation(ctx); err != nil {
		return err
	}

	doing := activity.Begin(ctx, "%s", t.Why)
	defer doing.End()
	err := w.runJob(ctx, t, conf, request)
	// An error would count as a failure of the task, which belongs to a request that no longer runs.
	if errors.Is(err, errStale) {
		<-ctx.Done()
		return ctx.Err()
	}

	return err
}

// runJob runs an installation or one step of an update on this host.
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
		// The download comes first, so that the services are not stopped during it.
		if err := w.o.Server.Prepare(ctx, c); err != nil {
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

// installationTimeout limits how long the worker's tasks wait for a previous installation to be finished.
const installationTimeout = time.Minute

// finishInstallation completes an interrupted installation, and closes installationDone even if that fails. It
// runs in its own goroutine: the installation script of a package may have started this worker, and may itself
// be waiting for the worker. finishInstallation returns only when ctx is done, since the end of one part ends
// the whole worker.
func (w *worker) finishInstallation(ctx context.Context) error {
	if w.o.FinishInstallation != nil {
		if err := w.o.FinishInstallation(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot finish the previous installation; partial files may remain", "error", err)
		}
	}

	close(w.installationDone)
	<-ctx.Done()
	return nil
}

// awaitInstallation waits until a previous installation is finished, since its package script could end tasks
// or change their results. If the wait takes longer than installationTimeout, the update continues.
func (w *worker) awaitInstallation(ctx context.Context) error {
	select {
	case <-w.installationDone:
	case <-time.After(installationTimeout):
		slog.Warn("the previous installation is still being finished; continuing in parallel")
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

// Journal is written to the worker's own disk before and after each task. If the worker is killed, it
// continues from the journal.
type Journal struct {
	Request int `json:"request"`
	// Started is the StartedAt of the request. It distinguishes requests in different stores, where IDs
	// repeat.
	Started time.Time `json:"started"`
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"` // 0 if the release is being installed
	Name    string    `json:"name"`
	Phase   string    `json:"phase"`
	Message string    `json:"message,omitempty"` // the reason for a failure
	// WaitedFor are the servers at fault for a failure, or nil if this server is at fault.
	WaitedFor []int     `json:"waited-for,omitempty"`
	At        time.Time `json:"at"` // when the phase began
}

// Identity implements carry.Identified: the journal of another step keeps no unknown fields of the previous one.
func (j Journal) Identity() any { return [3]int{j.Request, j.Attempt, j.Step} }

// journalFile returns the path of the journal in the worker's directory.
func journalFile(dir string) string { return filepath.Join(dir, "journal.json") }

// readJournal reads the journal in the worker's directory. It returns an empty journal if there is none.
func readJournal(dir string) (j Journal, err error) {
	_, err = jsonfile.Read(journalFile(dir), &j)
	if err != nil {
		return j, fmt.Errorf("cannot read the journal: %w", err)
	}

	return j, nil
}

// writeJournal replaces the journal in the worker's directory.
func writeJournal(dir string, j Journal) error {
	if err := jsonfile.Write(journalFile(dir), j); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}

	return nil
}

// lockFolder creates the directory if necessary, and locks it, so that this process is its only worker until the
// process exits or closes the returned file. It returns an error if another worker has locked the directory.
func lockFolder(dir string) (*os.File, error) {
	if err := osutil.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the worker's directory: %w", err)
	}

	f, err := osutil.TryLockFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR)
	if errors.Is(err, osutil.ErrLocked) {
		return nil, fmt.Errorf("cannot lock %s: another worker uses it", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the worker's directory: %w", err)
	}

	return f, nil
}
