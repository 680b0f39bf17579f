package worker

import (
	"time"

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

// ObserveWorkers takes in all workers' records. At the first time at a step it believes
// their own times of when they have moved, within its own clock's bounds; after that it
// compares with what they had done before.
func (s *Snapshot) ObserveWorkers(all map[int]record.Status, now time.Time) {
	first := s.Status == nil || s.WorkersReadAt.Before(s.Status.At)
	s.Workers, s.WorkersReadAt, s.LookedAt = all, now, now
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
