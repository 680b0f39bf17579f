package updater

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"bijou/state"
	"bijou/updater/record"
	"bijou/updater/release"
)

// WorkerOptions are of one server's worker.
type WorkerOptions struct {
	Store    *state.Keyspace
	LRN      int
	Version  string // of this program
	Manifest release.Manifest
	Dir      string // its folder on the disk
	Server   Server
	Sums     string // the digest of the SHA256SUMS that this program was installed by; "": not known
	// Install brings a request's release to this server, and puts it in this program's place.
	Install func(ctx context.Context, r record.Request, c record.Config) error
	// Mend finishes what an installation has left half-way on this server. Nothing is
	// begun meanwhile, for a minute at most. May be nil.
	Mend    func(ctx context.Context) error
	Metrics *WorkerMetrics // may be nil
	Ready   func()         // called once it works as its LRN, or that is refused; may be nil

	Claimant state.Claimant // this process, for the claim of its LRN
}

// digests are of what this worker is.
func (o WorkerOptions) digests() record.Digests {
	return record.Digests{Sums: o.Sums, Plan: o.Manifest.Digest}
}

// ErrHandOver says that the worker has installed another version, which is to take
// its place.
var ErrHandOver = errors.New("another version is installed")

// worker obeys NextTask.
type worker struct {
	o     WorkerOptions
	steps []release.Step
	clock clock
	seat  Seat
	conf  record.Config
	sight *sight
	away  *absentStore

	claim    *state.KeyClaim
	process  *state.KeyProcess
	presence *presence

	asked  int64 // the revision at which the request was written, as far as it was read
	readAt int64 // the revision at which it was read
	late   []int // whom it has seen last to be late

	surveyInterval atomic.Int64 // as configured; 0 until that is known

	rests  atomic.Int64  // the request whose part is done; 0: one runs, or there was none
	mended chan struct{} // closed once nothing is half-way on the server, as far as that can be
	errand *errand       // what it is doing; nil: nothing
}

// RunWorker does the server's part in updates until ctx is done, or until it has
// installed another version: ErrHandOver. A store that is away is waited for. Where
// another server works as that LRN, or did last, it waits for an operator, and does
// nothing; when its claim is taken, it ends: state.ErrClaimLost.
func RunWorker(ctx context.Context, o WorkerOptions) error { return runWorker(ctx, o, newClock()) }

func runWorker(ctx context.Context, o WorkerOptions, c clock) error {
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
	w := &worker{claim: claim, process: o.Store.NewProcess(), o: o, steps: o.Manifest.Steps(), clock: c, mended: make(chan struct{})}
	w.seat = Seat{Keys: Keys(), LRN: o.LRN, Own: o.Version, Digests: o.digests(), Steps: w.steps, Journal: w.clock.since(j), Jitter: rand.Float64()}
	w.away = &absentStore{clock: w.clock}
	w.sight = newSight(o.Store, Keys().Current(), Keys().Gate(), Keys().AllConfig()) // not the other workers' records: N² events
	w.presence = &presence{o: o, claim: w.claim, process: w.process, heard: w.heard}
	return w.run(ctx)
}

// run keeps the worker's helpers alive while it works.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	parts := []func(context.Context) error{w.claim.Watch, w.presence.run, w.sight.run, w.mend, w.survey, w.loop}
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

// loop looks, decides and acts, until ctx is done.
func (w *worker) loop(ctx context.Context) error {
	defer w.leave()
	for {
		if err := w.refresh(ctx); err != nil {
			return unlessDone(ctx, err)
		}
		w.tell(ctx)
		w.seat.Back = w.away.back()
		w.rest()
		t := NextTask(w.seat, w.clock.now())
		w.seat.All = nil
		if err := w.act(ctx, t); err != nil {
			return unlessDone(ctx, err)
		}
	}
}

// unlessDone drops the error of a call that was to end.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// act does the task, and waits for whatever comes next.
func (w *worker) act(ctx context.Context, t Task) error {
	w.o.Metrics.saw(w.seat, t)
	switch t.Job {
	case Write:
		return w.write(ctx, t.Status)
	case Look:
		return w.look(ctx)
	case Install, Run:
		return w.begin(ctx, t)
	case Cancel:
		slog.Info("cancels what it does", "why", t.Why)
		w.errand.cancel()
	}
	return w.wait(ctx, t.Until)
}

// wait waits until something has changed, what is being done has ended, or the
// time has come.
func (w *worker) wait(ctx context.Context, at time.Time) error {
	if w.errand != nil && (at.IsZero() || w.errand.tellAt.Before(at)) {
		at = w.errand.tellAt
	}
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(max(0, at.Sub(w.clock.now())))
		defer timer.Stop()
		due = timer.C
	}
	var ended <-chan error
	if w.errand != nil {
		ended = w.errand.ended
	}
	select {
	case <-w.sight.bell:
	case <-due:
	case err := <-ended:
		return w.done(ctx, err)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// errStale says that the store holds another request than the worker decided on.
var errStale = errors.New("the request has changed")

// unchanged is errStale unless the attempt at the request still runs.
func unchanged(v *state.KeyView, r record.Request) error {
	now, err := LoadRequest(v)
	if err != nil {
		return err
	}
	if !runs(now, r) {
		return errStale
	}
	return nil
}

// runs tells if the attempt at the request is the one that runs now.
func runs(now *record.Request, r record.Request) bool {
	return now != nil && now.ID == r.ID && now.StartedAt.Equal(r.StartedAt) && now.Attempt == r.Attempt && !now.Stop && !now.Ended()
}

// takes tells if the request that runs now is the one that the record is about.
func takes(now *record.Request, s record.Status) bool {
	return now != nil && s.For(*now) && now.Attempt == s.Attempt && !now.Stop && !now.Ended()
}

// write commits the worker's record, as long as its request is what it was: mostly
// nothing of that was written since, which saves reading it again. It says when that
// was, and not when it was decided on: the store may have been away.
func (w *worker) write(ctx context.Context, s record.Status) error {
	began := time.Now()
	err := w.persist(ctx, func() error {
		s.At = w.clock.now()
		written, err := w.claim.PutIf(ctx, Keys().Current(), w.asked, Keys().Worker(w.o.LRN), s)
		if written || err != nil {
			return err
		}
		return w.claim.Update(ctx, func(tx *state.KeyTx) error {
			r, err := LoadRequest(tx.KeyView)
			switch {
			case err != nil:
				return err
			case !takes(r, s):
				return errStale
			}
			w.seat.Current = r
			return tx.Put(Keys().Worker(w.o.LRN), s)
		})
	})
	if errors.Is(err, errStale) {
		w.sight.ring(news{all: true})
		return nil
	}
	if err == nil {
		slog.Info("comes to a step", "version", s.Version, "step", s.Step, "name", s.StepName, "finished", s.Finished, "error", s.Message)
		s.At = w.clock.now() // the store may have taken its time
		w.seat.CommitTook = max(time.Since(began), w.seat.CommitTook/2)
		w.seat.Status = &s
	}
	return err
}
