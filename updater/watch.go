package updater

import (
	"fmt"
	"slices"
	"time"

	"bijou/updater/record"
)

// How long the leader waits beyond others: for a server whose presence is gone
// to come back (a worker that hands over to its successor is gone for a moment),
// and, after the workers' own time-out, for one of them to say what is the matter.
const (
	absence  = 10 * time.Second
	patience = 30 * time.Second
)

// lostAfter is how long an installed version may take to begin: a worker that still
// lives says itself that nobody has taken over, and why.
const lostAfter = handOver + 5*time.Second

// watch looks after a request that runs.
func (s Snapshot) watch(now time.Time) Action {
	if failed, why := s.failures(now); len(failed) > 0 {
		return s.stop(now, failed, why)
	}
	if others, why := s.otherPlans(); len(others) > 0 {
		return s.stop(now, others, why)
	}
	if s.all(func(w record.Status) bool { return w.Finished }) {
		return s.finish(now)
	}
	if missing := s.missing(now); !slices.Equal(missing, s.Current.Missing) {
		return s.warn(now, missing)
	}
	if gate := s.gate(); gate.Step > s.Gate.Of(*s.Current) {
		return s.open(now, gate)
	}
	if lost := s.lost(now); len(lost) > 0 {
		return s.stop(now, lost, fmt.Sprintf("server %s has installed %s, which does not come up there: no worker of it has begun within a minute",
			record.ListServers(lost), s.Current.Version))
	}
	deadline := s.progress().Add(s.Config.WorkerTimeout + patience)
	if !now.Before(deadline) {
		atFault, why := s.tellStuck()
		return s.stop(now, atFault, fmt.Sprintf("nothing has moved for %s; %s", s.Config.WorkerTimeout, why))
	}
	if waited := now.Sub(s.progress()).Truncate(time.Second); !s.Since.IsZero() && waited >= s.noted()+s.noteEvery() || s.Witnessed && waited < s.noted() {
		return s.note(waited)
	}
	if at := s.slowAt(); !at.IsZero() && !now.Before(at) {
		return s.slow(now)
	}
	return wait(s.wake(now, deadline), fmt.Sprintf("update to %s runs", s.Current.Version))
}

// worker is the server's record about the request; ok is false if there is none.
func (s Snapshot) worker(lrn int) (w record.Status, ok bool) {
	w, ok = s.Workers[lrn]
	return w, ok && w.For(*s.Current)
}

// all tells if every server of the request has a record of that kind.
func (s Snapshot) all(holds func(record.Status) bool) bool {
	for _, lrn := range s.Current.Servers {
		if w, ok := s.worker(lrn); !ok || !holds(w) {
			return false
		}
	}
	return true
}

// failure is the error that the server's worker has recorded in this attempt; "" is
// none. One that was installing and is not there any more cannot: it was to hand over
// to another one, which has not come.
func (s Snapshot) failure(lrn int, now time.Time) (w record.Status, why string) {
	w, ok := s.worker(lrn)
	if ok && w.Error && w.Attempt == s.Current.Attempt {
		return w, orElse(w.Message, "it does not say why")
	}
	since, absent := s.Absent[lrn]
	if s.Since.After(since) { // retried meanwhile
		since = s.Since
	}
	if ok && w.Step == 0 && absent && !now.Before(since.Add(handOver)) {
		return w, fmt.Sprintf("no worker has been alive there for %s: that of %s has not taken over", handOver, s.Current.Version)
	}
	return w, ""
}

// gate is the record of one that is no further than any server, so that all have come to
// its step; Step 0: there is no such step.
func (s Snapshot) gate() (low record.Status) {
	low.Step = -1
	for _, lrn := range s.Current.Servers {
		w, ok := s.worker(lrn)
		switch {
		case !ok:
			return record.Status{}
		case !w.Finished && (low.Step < 0 || w.Step < low.Step):
			low = w
		}
	}
	return low
}

// late are the servers that others wait for: all that are not further than the
// slowest.
func (s Snapshot) late() []int { return s.behind(s.gate().Step + 1) }

// missing are the servers of the request that have been absent for too long.
func (s Snapshot) missing(now time.Time) (missing []int) {
	for _, lrn := range s.Current.Servers {
		if since, absent := s.Absent[lrn]; absent && !now.Before(since.Add(absence)) {
			missing = append(missing, lrn)
		}
	}
	return missing
}

// lost are the servers on which the version that was installed has not begun.
func (s Snapshot) lost(now time.Time) (lost []int) {
	for _, lrn := range s.Current.Servers {
		if since, hands := s.Handing[lrn]; hands && !now.Before(since.Add(lostAfter)) {
			lost = append(lost, lrn)
		}
	}
	return lost
}

// wake is when the leader must look again though nothing has changed.
func (s Snapshot) wake(now, deadline time.Time) time.Time {
	if due := s.progress().Add(s.noted() + s.noteEvery()); !s.Since.IsZero() && due.Before(deadline) {
		deadline = due
	}
	deadline = sooner(now, s.slowAt(), deadline)
	for _, lrn := range s.Current.Servers {
		if since, absent := s.Absent[lrn]; absent {
			deadline = sooner(now, since.Add(absence), sooner(now, since.Add(handOver), deadline))
		}
		if since, hands := s.Handing[lrn]; hands {
			deadline = sooner(now, since.Add(lostAfter), deadline)
		}
	}
	return deadline
}

// sooner is the time if it is still to come, and before the deadline.
func sooner(now, at, deadline time.Time) time.Time {
	if at.After(now) && at.Before(deadline) {
		return at
	}
	return deadline
}

// open opens the gate of a step.
func (s Snapshot) open(now time.Time, at record.Status) Action {
	r := s.Current
	g := record.Gate{Request: r.ID, StartedAt: r.StartedAt, Attempt: r.Attempt, Step: at.Step, StepName: at.StepName, Plan: at.Plan, At: now}
	return Action{Verb: Open, Why: fmt.Sprintf("all servers have come to step %d", at.Step), Changes: []Change{put(s.Keys.Gate(), g)}}
}

// warn says which servers are missing, with an alert for those that were not before.
func (s Snapshot) warn(now time.Time, missing []int) Action {
	r := *s.Current
	r.Missing = missing
	gone := slices.DeleteFunc(slices.Clone(missing), func(lrn int) bool { return slices.Contains(s.Current.Missing, lrn) })
	a := Action{Verb: Warn, Changes: []Change{put(s.Keys.Current(), r)}}
	if len(gone) == 0 {
		a.Why = "servers are back"
		return a
	}
	a.Why = "no worker is alive on server " + record.ListServers(gone)
	alert := s.alert(now, record.AlertMissing, a.Why)
	alert.Servers = gone
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, now.UnixNano())
	a.Changes = append(a.Changes, put(s.Keys.Alert(alert.ID), alert))
	return a
}
