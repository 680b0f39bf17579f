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

// Snapshot is the state on which one server's worker bases its decisions.
type Snapshot struct {
	LRN     int
	Own     string         // the version of this worker
	Digests record.Digests // the digests of the files from which this worker was installed, and of its plan
	Steps   []release.Step // the steps of this worker's own manifest
	Timeout time.Duration  // how long this worker waits for other servers
	// Current is the running or last request, or nil if there is none.
	Current *record.Request
	Gate    record.Gate    // the gate that was opened last, possibly for another request
	Status  *record.Status // this worker's own record, or nil
	Journal Journal        // the journal on this server's disk
	Busy    bool           // the task of the journal is running
	// Workers are the records of all workers if they were just read, or nil. LookedAt is when some or all of
	// them were last read. An open gate usually makes such a read unnecessary.
	Workers       map[int]record.Status
	LookedAt      time.Time
	WorkersReadAt time.Time // when all records were last read
	Progress      int       // the request's progress at WorkersReadAt
	MovedAt       time.Time // when this worker last saw progress while at its step
	StoreBackAt   time.Time // when the store came back after an outage

	CommitTook time.Duration // how long this worker's last commits took
	Jitter     float64       // a random number from 0 to 1, different for each worker
}

// ObserveWorkers stores the records of all workers, which were read at the time now. If there is a request, it
// also stores the request's progress, and updates MovedAt. At the first read since this worker has reached
// its step, MovedAt becomes the time of the last progress according to the records. A later read sets MovedAt
// to now if the progress has changed since the previous read.
func (s *Snapshot) ObserveWorkers(records map[int]record.Status, now time.Time) {
	// Status.At is when this worker reached its step. Without a Status, each read counts as the first.
	isFirstAtStep := s.Status == nil || s.WorkersReadAt.Before(s.Status.At)
	s.Workers = records
	s.WorkersReadAt = now
	s.LookedAt = now
	if s.Current == nil {
		return
	}

	progress := s.Current.Progress(records)
	switch {
	case isFirstAtStep:
		s.MovedAt = s.reportedMoveAt(now)
	case progress != s.Progress:
		s.MovedAt = now
	}
	s.Progress = progress
}

// reportedMoveAt returns the time of the last progress according to the servers' own records for the request. It
// ignores times in the future, and returns the zero time if no other times are left.
func (s *Snapshot) reportedMoveAt(now time.Time) (at time.Time) {
	for _, lrn := range s.Current.Servers {
		if w, ok := s.Workers[lrn]; ok && w.IsFor(*s.Current) && !w.At.After(now) {
			at = latest(at, w.At)
		}
	}
	return at
}

// lookAtWorkers reads the request and the records of all workers into the snapshot, unless a worker in a small
// sample is late. In that case this worker must wait anyway. The sample keeps N waiting workers from reading N
// records each, again and again. A worker that has waited for too long reads all records without a sample, to
// report which servers are late.
func (w *worker) lookAtWorkers(ctx context.Context) error {
	isLate, err := w.sampleIsLate(ctx)
	if err != nil {
		return err
	}
	if !isLate {
		if err := w.readAllWorkers(ctx); err != nil {
			return err
		}
	}

	// A look that ends at the sample also counts.
	w.snapshot.LookedAt = w.clock.Now()
	return nil
}

// sampleIsLate reports whether a server from sampleServers has not reached this worker's step. If so, that
// server becomes the only one in w.late. sampleIsLate reads nothing, and returns false, if this worker has been
// at its step for at least the Timeout.
func (w *worker) sampleIsLate(ctx context.Context) (isLate bool, err error) {
	own := w.snapshot.Status
	hasTimedOut := !w.clock.Now().Before(own.At.Add(w.snapshot.Timeout))
	if hasTimedOut {
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

// maxSample is the number of records in a sample.
const maxSample = 3

// sampleServers returns the servers whose records are read before all others. If the first server that was late
// at the last look is still in the request, sampleServers returns only that server. Otherwise it returns the
// maxSample servers that follow this server in the request, so that each worker has a different sample, or nil
// if the request has only a few servers.
func (w *worker) sampleServers() []int {
	servers := w.snapshot.Current.Servers
	if len(w.late) > 0 && slices.Contains(servers, w.late[0]) {
		return w.late[:1]
	}
	if len(servers) <= 2*maxSample {
		// Reading all records is as cheap as reading a sample.
		return nil
	}

	// After the last server, the first server of the request follows. If this server is not in the request,
	// own is -1, and all servers follow.
	own := slices.Index(servers, w.o.LRN)
	following := append(slices.Clone(servers[own+1:]), servers[:max(own, 0)]...)
	return following[:maxSample]
}

// readAllWorkers reads the request and the records of all workers, also this worker's own, into the snapshot. It
// sets w.late to the servers that are late, or to nil if there is no request or this worker has no record.
func (w *worker) readAllWorkers(ctx context.Context) error {
	var records map[int]record.Status
	err := w.view(ctx, func(v *keyspace.View) (err error) {
		if w.snapshot.Current, err = updater.LoadRequest(v); err != nil {
			return err
		}
		if records, err = updater.LoadWorkers(v); err != nil {
			return err
		}

		return w.readOwnStatus(v)
	})
	if err != nil {
		return err
	}

	w.snapshot.ObserveWorkers(records, w.clock.Now())
	w.late = nil
	if w.snapshot.Current != nil && w.snapshot.Status != nil {
		// The records were just read, so it is known which servers are late.
		w.late, _ = w.snapshot.lateServers()
	}
	return nil
}

// Server carries out a worker's tasks on the server where the worker runs. Package host implements it. Every
// method can be repeated, and returns early if ctx is done.
type Server interface {
	// Configure applies the configuration to all tasks that begin later.
	Configure(c record.Config) error
	// NeedsUpdate reports whether the component differs from the release, its update was interrupted, or it
	// was started with different versions of its files.
	NeedsUpdate(ctx context.Context, c release.Component) (bool, error)
	// Differences describes how the component differs from the release.
	Differences(ctx context.Context, c release.Component) ([]string, error)
	// Room returns the free space for files of releases, and the digests of the files from which components
	// are installed, by component. It returns no rooms if the free space is unknown.
	Room(m release.Manifest) (rooms []record.Room, installed map[string]string, err error)
	// Prepare downloads the files for an update, and changes nothing else.
	Prepare(ctx context.Context, c release.Component) error
	// Stop stops the component's services.
	Stop(ctx context.Context, c release.Component) error
	// Update brings the component to the state of the release, and returns once it is healthy. It does not
	// change a component that is healthy and does not differ from the release.
	Update(ctx context.Context, c release.Component) error
	// CheckHealth returns the reason why the component is not healthy, or nil if it is healthy.
	CheckHealth(ctx context.Context, c release.Component) error
	// Examine returns a problem of the component, such as a missing file, or nil if there is none. runs
	// reports whether its services are running, so that it may become healthy soon.
	Examine(ctx context.Context, c release.Component) (ill error, runs bool)
	// IsRunning reports whether the component's services are running, healthy or not.
	IsRunning(ctx context.Context, c release.Component) bool
	// CheckMembers checks the component's members on the given servers, and returns the unhealthy ones with
	// the reasons. asked is false if the component has no check of members.
	CheckMembers(ctx context.Context, c release.Component, lrns []int) (unhealthy map[int]error, asked bool)
	// DeliverContents uploads the component's contents to their destination.
	DeliverContents(ctx context.Context, c release.Component) error
}
