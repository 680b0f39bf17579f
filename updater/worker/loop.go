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

// Options configure one server's worker.
type Options struct {
	Store    *keyspace.Space
	LRN      int
	Version  string // of this program
	Manifest release.Manifest
	Dir      string // its folder on the disk
	Server   Server
	Sums     string // the digest of the SHA256SUMS that this program was installed by; "": not known
	Package  string // how releases come to the server, as a release.Package says it; "": not known
	// Install downloads a request's release, and puts it in this program's place.
	Install func(ctx context.Context, r record.Request, c record.Config) error
	// FinishInstallation finishes what an installation has left half-way on this server. No task is
	// begun meanwhile, for a minute at most. May be nil.
	FinishInstallation func(ctx context.Context) error
	Metrics            *metrics.Registry // may be nil
	Ready              func()            // called once it works as its LRN, or was refused; may be nil

	Claimant keyspace.Claimant // this process, for the claim of its LRN
}

func (o Options) digests() record.Digests {
	return record.Digests{Sums: o.Sums, Plan: o.Manifest.Digest}
}

// ErrHandOver is returned by Run when it has installed another version, which is to take its place.
var ErrHandOver = errors.New("another version is installed")

// worker does what NextTask decides.
type worker struct {
	o        Options
	clock    clock.Clock
	snapshot Snapshot
	config   record.Config
	feed     *updater.ChangeFeed

	claim   *keyspace.Claim
	process *keyspace.SharedSession
	ready   sync.Once // it has said that it works

	requestRevision int64 // the revision at which the current request was written
	readRevision    int64 // the revision at which that request was read
	late            []int // the servers that were late at the last look

	surveyInterval atomic.Int64 // as configured; 0 until that is known
	// storeBackAt is when the store last came back, or nil if it was never away. Each part of the worker notices
	// an outage at its own time.
	storeBackAt atomic.Pointer[time.Time]

	resting atomic.Bool // it has seen that no update runs
	// finishedRequest is the last request, if this worker has done its part of it, or 0.
	finishedRequest  atomic.Int64
	installationDone chan struct{} // closed once no installation is half-way, as far as that can be helped
	running          *runningTask  // nil: nothing runs
}

// Run does the server's part in updates until ctx is done, or returns ErrHandOver
// when it has installed another version. It waits for a store that is away. Where another
// server works as that LRN, or did last, it does nothing, and waits for an operator; when
// its claim is taken it returns keyspace.ErrClaimLost.
func Run(ctx context.Context, o Options) error { return runWorker(ctx, o, clock.New()) }

// runWorker locks the worker's directory, takes the server's claim, and works until ctx is done or the
// claim is lost.
func runWorker(ctx context.Context, o Options, c clock.Clock) error {
	measureSnapshot(o.Metrics, Snapshot{})
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

	w := &worker{
		claim:            claim,
		process:          keyspace.NewSharedSession(o.Store, true),
		o:                o,
		clock:            c,
		installationDone: make(chan struct{}),
	}

	j.At = c.Clamp(j.At)
	w.snapshot = Snapshot{
		LRN:     o.LRN,
		Own:     o.Version,
		Digests: o.digests(),
		Steps:   o.Manifest.Steps(),
		Journal: j,
		Jitter:  rand.Float64(),
	}

	// The other workers' records are not watched: each of N workers would get N events a step.
	w.feed = updater.NewChangeFeed(o.Store, keys.Current, keys.Gate, keys.AllConfig)
	return w.run(ctx)
}

// run runs all parts of the worker, and ends all of them when one ends.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var running sync.WaitGroup
	parts := []func(context.Context) error{w.claim.Watch, w.keepPresence, w.feed.Run, w.keepInstallationFinished, w.runSurvey, w.loop}
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

// loop runs the worker: it refreshes the snapshot, asks for the next task, and executes it.
func (w *worker) loop(ctx context.Context) error {
	defer w.stopTask()

	for {
		if err := w.refresh(ctx); err != nil {
			return unlessDone(ctx, err)
		}

		w.publishActivity(ctx)
		if at := w.storeBackAt.Load(); at != nil {
			w.snapshot.StoreBackAt = *at
		}
		w.noteFinished()
		t := NextTask(w.snapshot, w.clock.Now())
		w.snapshot.Workers = nil
		if err := w.execute(ctx, t); err != nil {
			return unlessDone(ctx, err)
		}
	}
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// execute does the task, or starts it. Then it waits for a change.
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
		slog.Info("cancels what it does", "why", t.Why)
		w.running.cancel()
	}

	return w.wait(ctx, t.Until)
}

// wait waits until the time, a change in the store, or the end of the running task.
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

// errStale is the error of a commit when the store holds another request than the worker
// has decided on.
var errStale = errors.New("the request has changed")

// checkUnchanged returns errStale if the current update is no longer r.
func checkUnchanged(v *keyspace.View, r record.Request) error {
	now, err := updater.LoadRequest(v)
	if err != nil {
		return err
	}
	if !record.IsCurrent(now, r) {
		return errStale
	}

	return nil
}

// writeStatus commits the worker's record, as long as its request runs. It first assumes that the request
// has not changed since it was read, which saves reading it again. The record has the time of the commit
// and not of the decision, since the store can be away in between.
func (w *worker) writeStatus(ctx context.Context, s record.Status) error {
	s.Message = record.Shorten(s.Message, record.MaxMessage) // a longer one might never be committed
	began := time.Now()

	err := w.retryStore(ctx, func() error {
		s.At = w.clock.Now()
		written, err := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Worker(w.o.LRN), s)
		if written || err != nil {
			return err
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
		w.feed.Invalidate()
		return nil
	}
	if err != nil {
		return err
	}

	slog.Info("comes to a step",
		"version", s.Version, "step", s.Step, "name", s.StepName, "finished", s.Finished, "error", s.Message)
	s.At = w.clock.Now() // the store may have taken its time
	w.snapshot.CommitTook = max(time.Since(began), w.snapshot.CommitTook/2)
	w.snapshot.Status = &s

	return nil
}
