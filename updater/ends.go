package updater

import (
	"fmt"
	"time"

	"bijou/updater/record"
)

// finish reports that all servers have done all steps.
func (s Snapshot) finish(now time.Time) Action {
	r := *s.Current
	r.EndedAt, r.Missing = &now, nil
	why := fmt.Sprintf("update of %s to %s succeeded", record.ListServers(r.Servers), r.Version)
	return Action{Verb: Finish, Why: why, Changes: s.end(now, r, s.alert(now, record.AlertSucceeded, why))}
}

// stop stops the request because of those servers (nil: of none), and reports that.
func (s Snapshot) stop(now time.Time, servers []int, why string) Action {
	r := *s.Current
	r.Stop, r.EndedAt, r.Why = true, &now, why
	alert := s.alert(now, record.AlertStopped, fmt.Sprintf("update to %s stopped: %s", r.Version, why))
	alert.Servers = servers
	return Action{Verb: Stop, Why: why, Changes: s.end(now, r, alert)}
}

// end is the one transaction of a request's end: the request says so, the
// history knows it, and the report lies in the outbox.
func (s Snapshot) end(now time.Time, r record.Request, alert record.Alert) []Change {
	h := s.Entry
	a := record.Attempt{Number: r.Attempt, Result: alert.Kind, Why: r.Why, StartedAt: r.ProgressAt, EndedAt: &now}
	if r.Stop {
		a.AtFault = alert.Servers
	}
	h.End(a)
	return []Change{put(s.Keys.Current(), r), put(s.Keys.History(r.ID), h), put(s.Keys.Alert(alert.ID), alert)}
}

// alert is a message about the request. The same event has the same ID.
func (s Snapshot) alert(now time.Time, kind, message string) record.Alert {
	r := s.Current
	return record.Alert{
		ID: fmt.Sprintf("%d-%d-%s", r.ID, r.Attempt, kind), Kind: kind, Request: r.ID, Version: r.Version, Servers: r.Servers,
		Message: message, At: now,
	}
}
