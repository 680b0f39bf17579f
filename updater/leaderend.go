package updater

import (
	"fmt"
	"time"

	"bijou/updater/record"
)

// finishRequest reports that all servers have done all steps.
func (s Snapshot) finishRequest(now time.Time) Action {
	r := *s.Current
	r.EndedAt, r.Missing = &now, nil
	why := fmt.Sprintf("update of %s to %s succeeded", record.ListServers(r.Servers), r.Version)
	return Action{Verb: Finish, Why: why, Changes: s.endRequest(now, r, s.newAlert(now, record.AlertSucceeded, why))}
}

// stopRequest stops the request because of those servers (nil: of none), and reports that.
func (s Snapshot) stopRequest(now time.Time, servers []int, why string) Action {
	r := *s.Current
	r.Stop, r.EndedAt, r.Why = true, &now, why
	alert := s.newAlert(now, record.AlertStopped, fmt.Sprintf("update to %s stopped: %s", r.Version, why))
	alert.Servers = servers
	return Action{Verb: Stop, Why: why, Changes: s.endRequest(now, r, alert)}
}

// endRequest is the one transaction of a request's end: the request says so, the
// history knows it, and the report lies in the outbox.
func (s Snapshot) endRequest(now time.Time, r record.Request, alert record.Alert) []Change {
	h := s.Entry
	a := record.Attempt{Number: r.Attempt, Result: alert.Kind, Why: r.Why, StartedAt: r.ProgressAt, EndedAt: &now}
	if r.Stop {
		a.AtFault = alert.Servers
	}
	h.End(a)
	return []Change{put(s.Keys.Current(), r), put(s.Keys.History(r.ID), h), put(s.Keys.Alert(alert.ID), alert)}
}

// newAlert is a message about the request. The same event has the same ID.
func (s Snapshot) newAlert(now time.Time, kind, message string) record.Alert {
	r := s.Current
	return record.Alert{
		ID: fmt.Sprintf("%d-%d-%s", r.ID, r.Attempt, kind), Kind: kind, Request: r.ID, Version: r.Version, Servers: r.Servers,
		Message: message, At: now,
	}
}
