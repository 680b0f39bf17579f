package worker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/updater"
	"bijou/updater/clock"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Options are the settings of one server's worker.
type Options struct {
	Store    *keyspace.Space
	LRN      int
	Version  string // the version of this program
	Manifest release.Manifest
	Dir      string // the worker's directory on the disk
	Server   Server
	// Sums is the digest of the SHA256SUMS with which this program was installed, or "" if it is unknown.
	Sums string
	// Package is the form and architecture of the server's packages, as a release.Package, or "" if they are
	// unknown.
	Package string
	// Install downloads a request's release, and replaces this program with it.
	Install func(ctx context.Context, r record.Request, c record.Config) error
	// FinishInstallation completes an interrupted installation on this server. No task begins until
	// FinishInstallation returns, or until a minute has passed. It can be nil.
	FinishInstallation func(ctx context.Context) error
	Metrics            *metrics.Registry // can be nil
	// Ready is called when the worker first works under its LRN, and when it begins to wait because another
	// host does so. It can be nil.
	Ready func()

	Claimant keyspace.Claimant // identifies this process for the claim of its LRN
}

// digests returns the digests of the files from which this program was installed.
func (o Options) digests() record.Digests {
	return record.Digests{Sums: o.Sums, Plan: o.Manifest.Digest}
}

// ErrHandOver is returned by [Run] after it has installed a different version, which must take over.
var ErrHandOver = errors.New("a different version is installed")

// worker carries out the tasks that NextTask chooses.
type worker struct {
	o        Options
	clock    clock.Clock
	snapshot Snapshot
	config   record.Config
	feed     *updater.ChangeFeed

	claim   *keyspace.Claim
	process *keyspace.SharedSession
	ready   sync.Once // guards the call of Options.Ready

	requestRevision int64 // the revision at which the current request was written
	readRevision    int64 // the revision at which that request was read
	late            []int // the servers that were late when their records were last read

	surveyInterval atomic.Int64 // the configured interval, or 0 until it is read
	// storeBackAt is when the last outage of the store ended, or nil if there was none. Any goroutine of the
	// worker may notice an outage first.
	storeBackAt atomic.Pointer[time.Time]

	resting atomic.Bool // set if no update runs
	// finishedRequest is the ID of the last request if this worker has done its part of that request, and 0
	// otherwise.
	finishedRequest  atomic.Int64
	installationDone chan struct{} // closed after FinishInstallation
	running          *runningTask  // nil if no task runs
}

// Run does the server's part of updates until ctx is done. It returns ErrHandOver if it has installed a
// different version. It waits while the store cannot be reached. If another host works under the LRN in o, or
// was the last to do so, Run waits for an operator. It returns keyspace.ErrClaimLost if another process takes
// its claim.
func Run(ctx context.Context, o Options) error { return runWorker(ctx, o, clock.New()) }

// runWorker does what [Run] does, with the given clock. It locks the worker's directory, takes the server's
// claim, and runs all parts of the worker.
func runWorker(ctx context.Context, o Options, c clock.Clock) error {
	measureSnapshot(o.Metrics, Snapshot{}) // so that the metrics exist while the worker waits for its claim
	lock, err := lockFolder(o.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()

	j, err := readJournal(o.Dir)
	if err != nil {
		return err
	}
	claim, err := takeClaim(ctx, o)
	if err != nil {
		return unlessDone(ctx, err)
	}

	// The session is announced when keepPresence has published the worker. A campaign first waits for that.
	const announces = true
	w := &worker{
		claim:            claim,
		process:          keyspace.NewSharedSession(o.Store, announces),
		o:                o,
		clock:            c,
		installationDone: make(chan struct{}),
	}

	// The host's clock may have been set since the journal was written.
	j.At = c.Clamp(j.At)
	w.snapshot = Snapshot{
		LRN:     o.LRN,
		Own:     o.Version,
		Digests: o.digests(),
		Steps:   o.Manifest.Steps(),
		Journal: j,
		Jitter:  rand.Float64(),
	}

	// The other workers' records are not watched, since each of N workers would get N events per step.
	w.feed = updater.NewChangeFeed(o.Store, keys.Current, keys.Gate, keys.AllConfig)
	return w.run(ctx)
}

// run runs all parts of the worker. When one part ends, run cancels all other parts, and waits for them. It
// returns ErrHandOver if a part has returned that error, and otherwise the errors of all parts.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var running sync.WaitGroup
	parts := []func(context.Context) error{
		w.claim.Watch, w.keepPresence, w.feed.Run, w.finishInstallation, w.runSurvey, w.loop,
	}
	errs := make([]error, len(parts))
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}

	running.Wait()
	for _, err := range errs {
		if errors.Is(err, ErrHandOver) {
			return ErrHandOver
		}
	}

	return errors.Join(errs...)
}

// loop is the worker's main loop. It refreshes the snapshot, decides on the next task, and carries it out.
func (w *worker) loop(ctx context.Context) error {
	defer w.stopTask()

	for {
		if err := w.refresh(ctx); err != nil {
			return unlessDone(ctx, err)
		}

		w.publishActivity(ctx)
		// Other goroutines also note outages of the store, so the time comes from an atomic value.
		if at := w.storeBackAt.Load(); at != nil {
			w.snapshot.StoreBackAt = *at
		}
		w.noteFinished() // tells the survey whether an update runs
		t := NextTask(w.snapshot, w.clock.Now())

		// A later decision must not use these records of other workers, which may be out of date by then.
		w.snapshot.Workers = nil
		if err := w.execute(ctx, t); err != nil {
			return unlessDone(ctx, err)
		}
	}
}

// unlessDone returns err, or nil if ctx is done and the error is thus expected.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// execute carries out a short task, or starts a long one. The loop then decides again. For Idle and Cancel,
// execute calls wait before it returns.
func (w *worker) execute(ctx context.Context, t Task) error {
	measureSnapshot(w.o.Metrics, w.snapshot)

	switch t.Job {
	case Write:
		return w.writeStatus(ctx, t.Status)
	case Look:
		return w.lookAtWorkers(ctx)
	case Install, RunStep:
		return w.startTask(ctx, t)
	case Cancel:
		slog.Info("cancels its current task", "why", t.Why)
		w.running.cancel()
	}

	return w.wait(ctx, t.Until)
}

// wait returns at the given time, after a change in the store, when the running task ends, or when that task's
// activity must be published. If the task ends, wait also finishes it. A zero time never comes.
func (w *worker) wait(ctx context.Context, at time.Time) error {
	if w.running != nil && (at.IsZero() || w.running.publishAt.Before(at)) {
		at = w.running.publishAt
	}

	var due <-chan time.Time
	if !at.IsZero() {
		due = time.After(max(0, at.Sub(w.clock.Now())))
	}
	var ended <-chan error
	if w.running != nil {
		ended = w.running.ended
	}

	select {
	case <-w.feed.Ready():
	case <-due:
	case err := <-ended:
		return w.finishTask(ctx, err)
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// errStale is returned by a commit if the store no longer holds the request on which the decision was based.
var errStale = errors.New("the request has changed")

// checkUnchanged returns errStale if the attempt that r describes is no longer running.
func checkUnchanged(v *keyspace.View, r record.Request) error {
	stored, err := updater.LoadRequest(v)
	if err != nil {
		return err
	}
	if !record.IsCurrent(stored, r) {
		return errStale
	}

	return nil
}

// writeStatus commits the worker's record if its request is still running. Otherwise it returns nil, and the
// loop reads the request again. At first writeStatus assumes that the request has not changed, and reads the
// request only if this first commit writes nothing. The record's time is that of the commit and not of the
// decision, since an outage of the store may come between the two.
func (w *worker) writeStatus(ctx context.Context, s record.Status) error {
	// A longer message could exceed the limits of a transaction, so that the record could never be committed.
	s.Message = record.Shorten(s.Message, record.MaxMessage)
	began := time.Now()

	err := w.retryNotingOutage(ctx, func() error {
		s.At = w.clock.Now()
		written, err := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Worker(w.o.LRN), s)
		if err != nil {
			return err
		}
		if written {
			return nil
		}

		return w.claim.Update(ctx, func(tx *keyspace.Tx) error {
			r, err := updater.LoadRequest(tx.View)
			switch {
			case err != nil:
				return err
			case !record.AcceptsStatus(r, s):
				return errStale
			}

			w.snapshot.Current = r
			return tx.Put(keys.Worker(w.o.LRN), s)
		})
	})
	if errors.Is(err, errStale) {
		// The loop then reads the current request, and decides again.
		w.feed.Invalidate()
		return nil
	}
	if err != nil {
		return err
	}

	slog.Info("reaches a step",
		"version", s.Version, "step", s.Step, "name", s.StepName, "finished", s.Finished, "error", s.Message)
	// In the snapshot, the record's time is the end of the commit, which may have taken a long time.
	s.At = w.clock.Now()
	// CommitTook at most halves with each commit, so that one fast commit does not hide slow ones before it.
	w.snapshot.CommitTook = max(time.Since(began), w.snapshot.CommitTook/2)
	w.snapshot.Status = &s

	return nil
}
