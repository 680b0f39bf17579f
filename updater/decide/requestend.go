package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

func (s Snapshot) finishRequest(now time.Time) Action {
	r := *s.Current
	r.EndedAt, r.Missing = &now, nil
	why := fmt.Sprintf("update of %s to %s succeeded", record.ListServers(r.Servers), r.Version)
	return Action{Verb: Finish, Why: why, Changes: s.endRequest(now, r, s.newAlert(now, record.AlertSucceeded, why))}
}

func (s Snapshot) stopRequest(now time.Time, servers []int, why string) Action {
	r := *s.Current
	r.Stop, r.EndedAt, r.Why = true, &now, why
	alert := s.newAlert(now, record.AlertStopped, fmt.Sprintf("update to %s stopped: %s", r.Version, why))
	alert.Servers = servers
	return Action{Verb: Stop, Why: why, Changes: s.endRequest(now, r, alert)}
}

// endRequest is one transaction: the request, its entry in the history and the report in
// the outbox agree whatever is killed.
func (s Snapshot) endRequest(now time.Time, r record.Request, alert record.Alert) []updater.Change {
	h := s.Entry
	a := record.Attempt{Number: r.Attempt, Result: alert.Kind, Why: r.Why, StartedAt: r.AttemptAt, EndedAt: &now}
	if r.Stop {
		a.AtFault = alert.Servers
	}
	h.End(a)
	return []updater.Change{updater.Put(keys.Current, r), updater.Put(keys.History(r.ID), h), updater.Put(keys.Alert(alert.ID), alert)}
}

// newAlert gives the same event the same ID.
func (s Snapshot) newAlert(now time.Time, kind, message string) record.Alert {
	r := s.Current
	return record.Alert{
		ID: fmt.Sprintf("%d-%d-%s", r.ID, r.Attempt, kind), Kind: kind, Request: r.ID, Version: r.Version, Servers: r.Servers,
		Message: message, At: now,
	}
}
