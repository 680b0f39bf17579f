package simulation

import (
	"fmt"
	"strings"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// commit writes to the store, checks the rules, and wakes the watchers.
func (w *world) commit(changes []updater.Change) {
	before := get[record.Request](w.store, keys.Current)
	changes = w.mutate(changes)
	for _, c := range changes {
		w.checkChange(before, c)
	}
	w.store.commit(changes)
	heard := false
	for _, c := range changes {
		heard = heard || c.Key == keys.Current || c.Key == keys.Gate || strings.HasPrefix(c.Key, keys.AllConfig)
		if strings.HasPrefix(c.Key, keys.Outbox) {
			delete(w.store.values, c.Key) // alerts count as sent immediately, since the simulation does not read them
		}
	}
	w.follow(before, get[record.Request](w.store, keys.Current))
	for _, h := range w.servers {
		w.wakeAt(h, &h.updater, w.now.Add(w.between(0, 200*time.Millisecond)), w.lead)
	}
	if heard {
		w.hear()
	}
}

// follow records the change of the request.
func (w *world) follow(before, after *record.Request) {
	if before != nil && !record.IsCurrent(after, *before) {
		w.changedAt = w.now
	}
	if after == nil {
		return
	}
	if after.Repair && (before == nil || before.ID != after.ID) {
		w.faults["repaired"]++
		if len(after.Components) > 0 {
			w.faults["components repaired"]++
		}
	}
	if id := fmt.Sprintf("%d-%d", after.ID, after.Attempt); !w.attempts[id] {
		w.attempts[id], w.movedAt = true, w.now
	}
	for _, h := range w.servers {
		for _, m := range h.members {
			m.given = m.given || m.updating && !partOf(*after, h)
		}
	}
}

// checkChange checks that each attempt has one report, that turns and results belong to the running request,
// and that no update starts during a pause. It also records the servers' progress.
func (w *world) checkChange(r *record.Request, c updater.Change) {
	switch v := c.Value.(type) {
	case record.Alert:
		if v.Kind == record.AlertSucceeded || v.Kind == record.AlertStopped {
			id := strings.TrimSuffix(v.ID, "-"+v.Kind)
			w.reports[id]++
			w.ends++
			if w.reports[id] > 1 {
				w.violate("request and attempt %s have %d reports", id, w.reports[id])
			}
		}
		if v.Kind == record.AlertNoReleases {
			w.checkOutageAlert(v)
		}
	case record.Degraded:
		w.checkTold(v)
	case record.Turn:
		if r == nil || r.ID != v.Request || r.Stop || r.Ended() {
			w.violate("server %d takes a turn for request %d, which does not run", v.Server, v.Request)
		}
	case record.Contents:
		if r == nil || r.Version != v.Version || r.Stop || r.Ended() {
			w.violate("server %d reports contents of %s, which nobody waits for", v.Server, v.Version)
		}
	case record.Request:
		if r == nil || r.ID != v.ID {
			w.forgetTold()
		}
		if p := get[record.Pause](w.store, keys.Pause); p != nil && p.Until == nil && (r == nil || r.ID != v.ID) {
			w.violate("request %d starts in a pause", v.ID)
		}
	case record.Status:
		w.movedAt = w.now
		at := [2]int{v.Request, lrnOf(c.Key)}
		w.reached[at] = max(w.reached[at], v.Step)
	}
}

func lrnOf(key string) int {
	lrn, _ := record.ParseServerKey(keys.Workers, key)
	return lrn
}
