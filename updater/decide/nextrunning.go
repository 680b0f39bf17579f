package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// How long the leader waits beyond others: for a server whose presence is gone to come
// back (a worker that hands over to its successor is gone for a moment), and, after the
// workers' own time-out, for one of them to report what is the matter.
const (
	absenceTimeout = 10 * time.Second
	StallGrace     = 30 * time.Second
)

// lostTimeout is how long an installed version may take to start: a little longer than
// its predecessor waits, which reports the reason if it still lives.
const lostTimeout = record.HandOverTimeout + 5*time.Second

// nextWhileRunning decides the leader's action while an update runs. Failures come first, then the end of
// the update, gates, and stalls.
func (s Snapshot) nextWhileRunning(now time.Time) Action {
	if failed, why := s.failedServers(now); len(failed) > 0 {
		return s.stopRequest(now, failed, why)
	}
	if others, why := s.otherPlans(); len(others) > 0 {
		return s.stopRequest(now, others, why)
	}

	slowest := s.slowestRecord()
	if slowest.Step < 0 {
		return s.finishRequest(now)
	}

	if missing := s.serversSince(s.Absent, absenceTimeout, now); !slices.Equal(missing, s.Current.Missing) {
		return s.warnMissing(now, missing)
	}
	if slowest.Step > s.Gate.OpenStep(*s.Current) {
		return s.decideGate(now, slowest)
	}
	if lost := s.serversSince(s.HandingOver, lostTimeout, now); len(lost) > 0 {
		return s.stopRequest(now, lost, fmt.Sprintf("server %s has installed %s, which does not come up there: no worker of it has begun within a minute",
			record.ListSomeServers(lost), s.Current.Version))
	}

	deadline := s.lastMoveAt().Add(s.Config.WorkerTimeout + StallGrace)
	if !now.Before(deadline) {
		atFault, why := s.describeStall()
		return s.stopRequest(now, atFault,
			fmt.Sprintf("nothing has moved for %s; %s", s.Config.WorkerTimeout, why))
	}

	if waited := now.Sub(s.lastMoveAt()).Truncate(time.Second); s.owesNote(waited) {
		return s.recordWait(waited)
	}
	if at := s.slowDeadline(); !at.IsZero() && !now.Before(at) {
		return s.reportSlow(now)
	}

	return newWait(s.wakeTime(now, deadline), fmt.Sprintf("update to %s runs", s.Current.Version))
}

func (s Snapshot) workerRecord(lrn int) (w record.Status, ok bool) {
	w, ok = s.Workers[lrn]
	return w, ok && w.IsFor(*s.Current)
}

// workerFailure returns the error that the server's worker has recorded in this attempt; "" if there is
// none. A worker that ended at its installation, and whose successor has not come, cannot record one.
func (s Snapshot) workerFailure(lrn int, now time.Time) (w record.Status, why string) {
	w, ok := s.workerRecord(lrn)
	if ok && w.Error && w.Attempt == s.Current.Attempt {
		return w, cmp.Or(w.Message, "it does not say why")
	}

	since, absent := s.Absent[lrn]
	if s.StageSince.After(since) { // retried meanwhile
		since = s.StageSince
	}
	if ok && w.Step == 0 && absent && !now.Before(since.Add(record.HandOverTimeout)) {
		return w, fmt.Sprintf("no worker has been alive there for %s: that of %s has not taken over",
			record.HandOverTimeout, s.Current.Version)
	}

	return w, ""
}

// slowestRecord returns the record of the server that is furthest behind. Its Step is 0 if a server has no
// record yet, and -1 if all have finished.
func (s Snapshot) slowestRecord() (low record.Status) {
	low.Step = -1
	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		switch {
		case !ok:
			return record.Status{}
		case !w.Finished && (low.Step < 0 || w.Step < low.Step):
			low = w
		}
	}

	return low
}

func (s Snapshot) lateServers() []int { return s.serversBehind(s.slowestRecord().Step + 1) }

// serversSince returns the request's servers for which something has lasted for so long.
func (s Snapshot) serversSince(since map[int]time.Time, timeout time.Duration, now time.Time) (all []int) {
	for _, lrn := range s.Current.Servers {
		if at, lasts := since[lrn]; lasts && !now.Before(at.Add(timeout)) {
			all = append(all, lrn)
		}
	}
	return all
}

// wakeTime returns when the leader must decide again although no record has changed: when a timeout ends, or the
// wait must be recorded, at the deadline at the latest.
func (s Snapshot) wakeTime(now, deadline time.Time) time.Time {
	wake := deadline
	noteDue := s.lastMoveAt().Add(s.recordedWait() + s.noteInterval())
	if !s.StageSince.IsZero() && noteDue.Before(wake) {
		wake = noteDue
	}

	wake = soonerOf(now, s.slowDeadline(), wake)
	for _, lrn := range s.Current.Servers {
		if since, isAbsent := s.Absent[lrn]; isAbsent {
			wake = soonerOf(now, since.Add(record.HandOverTimeout), wake)
			wake = soonerOf(now, since.Add(absenceTimeout), wake)
		}
		if since, handsOver := s.HandingOver[lrn]; handsOver {
			wake = soonerOf(now, since.Add(lostTimeout), wake)
		}
	}

	return wake
}

// soonerOf returns at if it lies between now and the deadline, and the deadline otherwise.
func soonerOf(now, at, deadline time.Time) time.Time {
	if at.After(now) && at.Before(deadline) {
		return at
	}
	return deadline
}

// warnMissing returns the action that records which servers have no live worker. If there are new ones, it
// sends an alert about them.
func (s Snapshot) warnMissing(now time.Time, missing []int) Action {
	r := *s.Current
	r.Missing = missing
	gone := slices.DeleteFunc(slices.Clone(missing), func(lrn int) bool {
		return slices.Contains(s.Current.Missing, lrn)
	})
	a := Action{Verb: Warn, Changes: []updater.Change{updater.Put(keys.Current, r)}}
	if len(gone) == 0 {
		a.Why = "servers are back"
		return a
	}

	a.Why = "no worker is alive on server " + record.ListSomeServers(gone)
	alert := s.newAlert(now, record.AlertMissing, withHint(a.Why+s.describeSteps(gone), workerHint(gone)))
	alert.Servers = record.Blame(gone)
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, now.UnixNano())
	a.Changes = append(a.Changes, updater.Put(keys.Alert(alert.ID), alert))
	return a
}

// otherPlans returns the servers whose plan differs from that of the first server, or of the release.
func (s Snapshot) otherPlans() (others []int, why string) {
	first := -1
	names := map[int]string{}
	plan := s.Current.Plan

	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		if !ok || w.Step == 0 || w.Attempt != s.Current.Attempt {
			continue
		}

		if first < 0 {
			first = lrn
		}

		name := cmp.Or(names[w.Step], w.StepName)
		if record.Differ(plan, w.Plan) || name != w.StepName {
			others = append(others, lrn)
			why = fmt.Sprintf("server %d has another plan than server %d: its digest is %s, not %s; its step %d is %s, not %s",
				lrn, first, record.ShortDigest(w.Plan), record.ShortDigest(plan), w.Step, w.StepName, name)
			continue
		}
		names[w.Step] = name
		plan = cmp.Or(plan, w.Plan)
	}

	return others, why
}

// finishRequest returns the action that records the update's success.
func (s Snapshot) finishRequest(now time.Time) Action {
	r := *s.Current
	r.EndedAt = &now
	r.Missing = nil
	why := fmt.Sprintf("update of %s to %s succeeded", record.ListSomeServers(r.Servers), r.Version)
	return Action{
		Verb:    Finish,
		Why:     why,
		Changes: s.endRequest(now, r, s.newAlert(now, record.AlertSucceeded, why)),
	}
}

// stopRequest returns the action that stops the update. It shortens the reason, since a stop that exceeds
// one transaction would never be committed.
func (s Snapshot) stopRequest(now time.Time, servers []int, why string) Action {
	why = record.Shorten(why, record.MaxText)
	r := *s.Current
	r.Stop = true
	r.EndedAt = &now
	r.Why = why
	alert := s.newAlert(now, record.AlertStopped,
		withHint(fmt.Sprintf("update to %s stopped: %s", r.Version, why), s.stopHint(servers, why)))
	alert.Servers = record.Blame(servers)
	return Action{Verb: Stop, Why: why, Changes: s.endRequest(now, r, alert)}
}

// endRequest returns the changes that end a request, for one transaction. So the request, its entry in the
// history and the alert always agree.
func (s Snapshot) endRequest(now time.Time, r record.Request, alert record.Alert) []updater.Change {
	h := s.Entry
	a := record.Attempt{Number: r.Attempt, Result: alert.Kind, Why: r.Why, StartedAt: r.AttemptAt, EndedAt: &now}
	if r.Stop {
		a.AtFault = alert.Servers
	}
	h.End(a)
	return []updater.Change{updater.Put(keys.Current, r), updater.Put(keys.History(r.ID), h), updater.Put(keys.Alert(alert.ID), alert)}
}

// newAlert returns an alert about the current update. The same event always gets the same ID.
func (s Snapshot) newAlert(now time.Time, kind, message string) record.Alert {
	r := s.Current
	return record.Alert{
		ID:      fmt.Sprintf("%d-%d-%s", r.ID, r.Attempt, kind),
		Kind:    kind,
		Request: r.ID,
		Version: r.Version,
		Servers: r.Servers,
		Message: record.Shorten(message, maxMessage),
		At:      now,
	}
}

// maxMessage has room for a reason, the words before it, and what to type.
const maxMessage = record.MaxText + 768
