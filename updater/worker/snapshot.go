package worker

import (
	"context"
	"slices"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Snapshot has what one server's worker knows.
type Snapshot struct {
	LRN     int
	Own     string         // the version of this worker
	Digests record.Digests // of what this worker was installed from, and of its plan
	Steps   []release.Step // of its own manifest
	Timeout time.Duration  // how long it waits for the others
	Current *record.Request
	Gate    record.Gate    // the one that was opened last, perhaps for another request
	Status  *record.Status // its own record
	Journal Journal        // from its disk
	Busy    bool           // the task of the journal runs right now
	// Workers are all workers' records, if they were just read. LookedAt is when some or
	// all were read last. The gate usually makes that needless.
	Workers       map[int]record.Status
	LookedAt      time.Time
	WorkersReadAt time.Time // when it has read all records last
	Progress      int       // the request's, by then
	MovedAt       time.Time // when it has seen the progress grow, at its own step
	StoreBackAt   time.Time // when the store came back after an outage

	CommitTook time.Duration // how long its last commits took
	Jitter     float64       // from 0 to 1, each worker's own
}

// ObserveWorkers takes over the records of all workers, and notes when they have last moved. For the first
// look at a step it uses the times in their records, within the bounds of its own clock. After that it
// compares their progress with that of the last look.
func (s *Snapshot) ObserveWorkers(all map[int]record.Status, now time.Time) {
	first := s.Status == nil || s.WorkersReadAt.Before(s.Status.At)
	s.Workers = all
	s.WorkersReadAt = now
	s.LookedAt = now
	if s.Current == nil {
		return
	}

	n := s.Current.Progress(all)
	switch {
	case first:
		s.MovedAt = s.reportedMoveAt(now)
	case n != s.Progress:
		s.MovedAt = now
	}
	s.Progress = n
}

// reportedMoveAt returns when servers have moved last by their own records, without times
// in the future.
func (s *Snapshot) reportedMoveAt(now time.Time) (at time.Time) {
	for _, lrn := range s.Current.Servers {
		if w, ok := s.Workers[lrn]; ok && w.IsFor(*s.Current) && !w.At.After(now) {
			at = latest(at, w.At)
		}
	}
	return at
}

// lookAtWorkers reads the records of all workers, unless one of a small sample is late:
// that is enough to go on waiting, so that N waiting workers do not read N records each,
// again and again. A worker that has waited for too long reads all, to report for whom.
func (w *worker) lookAtWorkers(ctx context.Context) error {
	late, err := w.sampleIsLate(ctx)
	if err == nil && !late {
		err = w.readAllWorkers(ctx)
	}
	w.snapshot.LookedAt = w.clock.Now()
	return err
}

// sampleIsLate reports whether one of a few sampled servers has not reached this step. If so, reading all of
// them can wait.
func (w *worker) sampleIsLate(ctx context.Context) (yes bool, err error) {
	s := w.snapshot.Status
	if !w.clock.Now().Before(s.At.Add(w.snapshot.Timeout)) {
		return false, nil
	}

	for _, lrn := range w.sampleServers() {
		var other *record.Status
		err = w.view(ctx, func(v *keyspace.View) (err error) {
			other, err = updater.ReadKey[record.Status](v, keys.Worker(lrn))
			return err
		})
		if err != nil {
			return false, err
		}

		if other == nil || !w.snapshot.hasReached(*other) {
			w.late = []int{lrn}
			return true, nil
		}
	}

	return false, nil
}

// maxSample is how many records are read before all.
const maxSample = 3

// sampleServers returns a server that was late before, as long as it is in the request, or else the next
// few of the list. Each worker takes different ones.
func (w *worker) sampleServers() []int {
	all := w.snapshot.Current.Servers
	if len(w.late) > 0 && slices.Contains(all, w.late[0]) {
		return w.late[:1]
	}
	if len(all) <= 2*maxSample {
		return nil // it is as cheap to read all
	}

	own := slices.Index(all, w.o.LRN)
	next := append(slices.Clone(all[own+1:]), all[:max(own, 0)]...)
	return next[:maxSample]
}

// readAllWorkers reads the request and the records of all workers, and notes the servers that this one
// waits for.
func (w *worker) readAllWorkers(ctx context.Context) error {
	var all map[int]record.Status
	err := w.view(ctx, func(v *keyspace.View) (err error) {
		if w.snapshot.Current, err = updater.LoadRequest(v); err != nil {
			return err
		}
		if all, err = updater.LoadWorkers(v); err != nil {
			return err
		}

		return w.readOwnStatus(v)
	})

	w.snapshot.ObserveWorkers(all, w.clock.Now())
	w.late = nil
	if err == nil && w.snapshot.Current != nil && w.snapshot.Status != nil {
		w.late, _ = w.snapshot.lateServers()
	}
	return err
}

// Server does a worker's work on its own server; package host implements it. Every
// method can be repeated, and ends early when ctx does.
type Server interface {
	// Configure applies the configuration to whatever is begun from now on.
	Configure(c record.Config) error
	// NeedsUpdate reports whether the component is not what the release says, was left half-way, or
	// was started with others of its files.
	NeedsUpdate(ctx context.Context, c release.Component) (bool, error)
	// Differences describes in which ways the component is not what the release says.
	Differences(ctx context.Context, c release.Component) ([]string, error)
	// Room returns how much room there is for files of releases, and the sums of the files from which
	// components are installed. It returns none if that is not known.
	Room(m release.Manifest) (rooms []record.Room, installed map[string]string, err error)
	// Prepare downloads what an update needs, and touches nothing else.
	Prepare(ctx context.Context, c release.Component) error
	// Stop stops the component's services.
	Stop(ctx context.Context, c release.Component) error
	// Update makes the component what the release says, and returns once it is
	// healthy. One that has not changed and is healthy is left alone.
	Update(ctx context.Context, c release.Component) error
	// CheckHealth returns what is the matter with the component; nil if it is healthy.
	CheckHealth(ctx context.Context, c release.Component) error
	// Examine returns what is the matter with the component, such as a missing file; nil if it is well.
	// runs reports whether its services run: then it may become healthy soon.
	Examine(ctx context.Context, c release.Component) (ill error, runs bool)
	// IsRunning reports whether the component's services run, healthy or not.
	IsRunning(ctx context.Context, c release.Component) bool
	// CheckMembers returns what is the matter with those servers' members of the component,
	// without the healthy ones. asked is false if there is no way to find out.
	CheckMembers(ctx context.Context, c release.Component, lrns []int) (unhealthy map[int]error, asked bool)
	// DeliverContents uploads the component's contents to where they belong.
	DeliverContents(ctx context.Context, c release.Component) error
}
