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

// absenceTimeout is how long a server can be without a presence before it counts as absent. A worker that hands
// over to its successor has no presence for a moment.
const absenceTimeout = 10 * time.Second

// lostTimeout is how long a newly installed version can take to start. The previous worker waits a little less.
// If that worker is still running, it reports the reason before lostTimeout has passed.
const lostTimeout = record.HandOverTimeout + 5*time.Second

// nextWhileRunning decides the leader's action while an update runs. It looks, in this order, for failures
// and different plans, the end of the update, servers that are missing or back, gates to open, hand-overs that
// took too long, stalls, notes that are due, and slow progress. Failures come first, so that no gate opens after a
// failure.
func (s Snapshot) nextWhileRunning(now time.Time) Action {
	if failed, why := s.failedServers(now); len(failed) > 0 {
		return s.stopRequest(now, failed, why)
	}
	if others, why := s.otherPlans(); len(others) > 0 {
		return s.stopRequest(now, others, why)
	}

	slowest := s.slowestRecord()
	allFinished := slowest.Step < 0
	if allFinished {
		return s.finishRequest(now)
	}

	if missing := s.serversSince(s.Absent, absenceTimeout, now); !slices.Equal(missing, s.Current.Missing) {
		return s.warnMissing(now, missing)
	}
	if s.isGateDue(slowest) {
		return s.openGate(now, slowest)
	}

	// A previous worker that is still running reports a failed hand-over before this timeout ends.
	if lost := s.serversSince(s.HandingOver, lostTimeout, now); len(lost) > 0 {
		return s.stopRequest(now, lost, fmt.Sprintf("server %s installed %s, but no worker of that version started there within %s",
			record.ListSomeServers(lost), s.Current.Version, lostTimeout))
	}

	deadline := s.stallDeadline()
	if !now.Before(deadline) {
		atFault, why := s.describeStall()
		return s.stopRequest(now, atFault,
			fmt.Sprintf("no progress for %s; %s", s.Config.WorkerTimeout, why))
	}

	if waited := now.Sub(s.lastMoveAt()).Truncate(time.Second); s.owesNote(waited) {
		return s.recordWait(waited)
	}
	if at := s.slowDeadline(); !at.IsZero() && !now.Before(at) {
		return s.reportSlow(now)
	}

	return newWait(s.wakeTime(now, deadline), fmt.Sprintf("update to %s runs", s.Current.Version))
}

// workerRecord returns the record of the server's worker. ok is false if the worker has no record for the
// current request.
func (s Snapshot) workerRecord(lrn int) (w record.Status, ok bool) {
	w, ok = s.Workers[lrn]
	return w, ok && w.IsFor(*s.Current)
}

// workerFailure returns the record of the server's worker, and the reason why the worker has failed in this
// attempt, or "" if it has not. Usually the worker itself has recorded the reason. A worker that exited to
// install the release cannot record that its successor did not start. In this case workerFailure returns a
// reason once no worker has been alive for record.HandOverTimeout.
func (s Snapshot) workerFailure(lrn int, now time.Time) (w record.Status, why string) {
	w, ok := s.workerRecord(lrn)
	if ok && w.Error && w.Attempt == s.Current.Attempt {
		return w, cmp.Or(w.Message, "the worker gives no reason")
	}

	since, isAbsent := s.Absent[lrn]
	// A retry begins a new stage, and the absence counts from the beginning of that stage.
	if s.StageSince.After(since) {
		since = s.StageSince
	}

	isInstalling := ok && w.Step == 0
	if isInstalling && isAbsent && !now.Before(since.Add(record.HandOverTimeout)) {
		return w, fmt.Sprintf("no worker has been alive there for %s: the worker of %s has not taken over",
			record.HandOverTimeout, s.Current.Version)
	}

	return w, ""
}

// lateServers returns the servers that have not reached the step after the slowest server's step.
func (s Snapshot) lateServers() []int { return s.serversBehind(s.slowestRecord().Step + 1) }

// serversSince returns the request's servers whose time in since is at least timeout ago. It leaves out servers
// that have no time in since.
func (s Snapshot) serversSince(since map[int]time.Time, timeout time.Duration, now time.Time) (lrns []int) {
	for _, lrn := range s.Current.Servers {
		began, ok := since[lrn]
		if ok && !now.Before(began.Add(timeout)) {
			lrns = append(lrns, lrn)
		}
	}
	return lrns
}

// wakeTime returns when the leader must decide again even if no record changes. That is the earliest of these
// times: the deadline, the time when the leader must record its wait, which can be in the past, and the ends of the
// timeouts that have not ended yet.
func (s Snapshot) wakeTime(now, deadline time.Time) time.Time {
	wake := deadline
	// The leader records its wait only if it has observed the stage.
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

// soonerOf returns the time at if that time lies between now and the deadline. Otherwise it returns the
// deadline.
func soonerOf(now, at, deadline time.Time) time.Time {
	if at.After(now) && at.Before(deadline) {
		return at
	}
	return deadline
}

// warnMissing returns the action that records which servers have no live worker. missing must differ from the
// recorded servers. If some of the missing servers were not recorded before, the action also writes an alert about
// them.
func (s Snapshot) warnMissing(now time.Time, missing []int) Action {
	r := *s.Current
	r.Missing = missing
	newlyMissing := slices.DeleteFunc(slices.Clone(missing), func(lrn int) bool {
		return slices.Contains(s.Current.Missing, lrn)
	})

	a := Action{Verb: Warn, Changes: []updater.Change{updater.Put(keys.Current, r)}}
	if len(newlyMissing) == 0 {
		// Since missing has changed, some servers are no longer missing.
		a.Why = "the servers are back"
		return a
	}

	a.Why = "no worker is alive on server " + record.ListSomeServers(newlyMissing)
	message := withHint(a.Why+s.describeFirstStep(newlyMissing), workerHint(newlyMissing))
	alert := s.newAlert(now, record.AlertMissing, message)
	alert.Servers = record.Blame(newlyMissing)
	// Servers can be missing several times in one attempt, and each time needs its own alert.
	alert.ID = fmt.Sprintf("%s-%d", alert.ID, now.UnixNano())
	a.Changes = append(a.Changes, updater.Put(keys.Alert(alert.ID), alert))
	return a
}

// otherPlans returns the servers whose plan differs from the release's plan, or from the plan of the first
// server that runs a step. A plan differs if its digest or the name of the current step does. why describes
// the last difference.
func (s Snapshot) otherPlans() (others []int, why string) {
	first := -1               // the first server that runs a step
	names := map[int]string{} // the names of steps, by number, in the records of accepted servers
	plan := s.Current.Plan    // the digest of the plan; "" until it is known

	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		if !ok || w.Step == 0 || w.Attempt != s.Current.Attempt {
			continue
		}

		if first < 0 {
			first = lrn
		}

		name := cmp.Or(names[w.Step], w.StepName)
		differs := record.Differ(plan, w.Plan) || name != w.StepName
		if differs {
			others = append(others, lrn)
			why = fmt.Sprintf("server %d has a different plan from server %d: its digest is %s, not %s; its step %d is %s, not %s",
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
	// All servers have finished, so an earlier report of missing servers no longer applies.
	r.Missing = nil
	why := fmt.Sprintf("update of %s to %s succeeded", record.ListSomeServers(r.Servers), r.Version)
	return Action{
		Verb:    Finish,
		Why:     why,
		Changes: s.endRequest(now, r, s.newAlert(now, record.AlertSucceeded, why)),
	}
}

// noServers are the servers at fault if an operator has stopped the update.
var noServers []int

// stopRequest returns the action that stops the update and writes an alert about it. atFault are the servers that
// caused the stop. stopRequest shortens the reason, since a change that exceeds the limits of a transaction could
// never be committed.
func (s Snapshot) stopRequest(now time.Time, atFault []int, why string) Action {
	why = record.Shorten(why, record.MaxText)
	r := *s.Current
	r.Stop = true
	r.EndedAt = &now
	r.Why = why
	alert := s.newAlert(now, record.AlertStopped,
		withHint(fmt.Sprintf("update to %s stopped: %s", r.Version, why), s.stopHint(atFault, why)))
	alert.Servers = record.Blame(atFault)
	return Action{Verb: Stop, Why: why, Changes: s.endRequest(now, r, alert)}
}

// endRequest returns the changes that end a request. They must be written in one transaction, so that the
// request, its entry in the history and the alert always agree. The kind of the alert, AlertSucceeded or
// AlertStopped, is also the attempt's result.
func (s Snapshot) endRequest(now time.Time, r record.Request, alert record.Alert) []updater.Change {
	h := s.Entry
	a := record.Attempt{Number: r.Attempt, Result: alert.Kind, Why: r.Why, StartedAt: r.AttemptAt, EndedAt: &now}
	// An alert about a success names all servers of the update.
	if r.Stop {
		a.AtFault = alert.Servers
	}
	h.End(a)
	return []updater.Change{
		updater.Put(keys.Current, r),
		updater.Put(keys.History(r.ID), h),
		updater.Put(keys.Alert(alert.ID), alert),
	}
}

// newAlert returns an alert about the current update. Alerts of the same kind in the same attempt get the same
// ID. A caller that needs several of them changes the ID.
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

// maxMessage limits an alert's message: a reason, the words before it, and a hint.
const maxMessage = record.MaxText + 768
