package decide

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Findings returns all differences from the state that the last update left: servers without a worker, workers
// of a different version or with different files, and components that differ or are ill. Each finding keeps the
// time when it was first seen.
func (s Snapshot) Findings(now time.Time) []record.Finding {
	found := []record.Finding{}
	for _, lrn := range s.Servers {
		for _, f := range s.serverFindings(lrn, now) {
			found = append(found, s.keepFirstSeen(f, now))
		}
	}

	return found
}

// keepFirstSeen returns the finding with the time when it was first seen, and whether it was reported. A new
// finding was first seen now.
func (s Snapshot) keepFirstSeen(f record.Finding, now time.Time) record.Finding {
	f.Since = now
	f.Untold = true
	for _, before := range s.Degraded.Findings {
		if before.Same(f) {
			f.Since = before.Since
			f.Untold = before.Untold
		}
	}

	return f
}

// serverFindings returns the findings about one server. If its worker has a problem, that is the only
// finding, since the state of the server's components is then unknown.
func (s Snapshot) serverFindings(lrn int, now time.Time) []record.Finding {
	if why := s.workerProblem(lrn, now); why != "" {
		return []record.Finding{newFinding(lrn, "", why)}
	}

	r := s.Current
	if r == nil || !r.Succeeded() || !slices.Contains(r.Servers, lrn) {
		// The last update has left no state on this server to compare with.
		return nil
	}
	if _, isAlive := s.Present[lrn]; !isAlive {
		// The worker may be back in a moment, so the recorded findings stay.
		return s.findingsOfComponents(lrn, nil) // nil: no component was repaired
	}

	// If the worker has not inspected its server since the update, nothing is known about the components.
	// After a repair of some components, the findings about all others stay.
	inventory := s.Inventories[lrn]
	if inventory.Request != r.ID {
		if !r.Repair || len(r.Components) == 0 {
			return nil
		}
		return s.findingsOfComponents(lrn, r.Components)
	}

	var found []record.Finding
	for _, component := range slices.Sorted(maps.Keys(inventory.Differs)) {
		found = append(found, newFinding(lrn, component, strings.Join(inventory.Differs[component], "; ")))
	}
	return append(found, illComponents(lrn, inventory)...)
}

// newFinding returns a finding about the server's component, or about its worker if component is "".
func newFinding(lrn int, component, what string) record.Finding {
	return record.Finding{Server: lrn, Component: component, What: record.Shorten(what, record.MaxReason)}
}

// workerProblem returns a problem of the server's worker: the worker has been absent for absenceTimeout, differs
// from the worker that the last update has installed, or did not take part in that update. It returns "" if there
// is no problem.
func (s Snapshot) workerProblem(lrn int, now time.Time) string {
	since, isAbsent := s.Absent[lrn]
	isGone := isAbsent && !now.Before(since.Add(absenceTimeout))
	p, isAlive := s.Present[lrn]
	r := s.Current
	wasUpdated := r != nil && r.Succeeded() && slices.Contains(r.Servers, lrn)

	switch {
	case isGone && slices.Contains(s.Unseen, lrn):
		return "no worker has ever been seen"
	case isGone:
		return "no worker is alive"
	case !isAlive || !wasUpdated:
		return ""
	case !release.Same(p.Version, r.Version):
		return fmt.Sprintf("its worker has version %s, not %s", p.Version, r.Version)
	case record.Differ(p.Sums, r.Sums):
		return fmt.Sprintf("it was installed from different files: the digest of their %s is %s, not %s",
			release.SumsFile, record.ShortDigest(p.Sums), record.ShortDigest(r.Sums))
	case record.Differ(p.Plan, r.Plan):
		return fmt.Sprintf("its plan differs from the release's: the digest is %s, not %s", record.ShortDigest(p.Plan),
			record.ShortDigest(r.Plan))
	case !s.Workers[lrn].IsFor(*r):
		return "it did not take part in the last update: a different host did, with the number of this server"
	}

	return ""
}

// findingsOfComponents returns the recorded findings about a server's components, except components in
// repaired.
func (s Snapshot) findingsOfComponents(lrn int, repaired []string) (all []record.Finding) {
	for _, f := range s.Degraded.Findings {
		if f.Server == lrn && f.Component != "" && !slices.Contains(repaired, f.Component) {
			all = append(all, f)
		}
	}
	return all
}

// illComponents returns the findings about the server's ill components. It returns none if the inventory's Ill is
// not complete, for example because the worker has an earlier version and does not check components.
func illComponents(lrn int, i record.Inventory) (all []record.Finding) {
	if !i.KnowsHealth() {
		return nil
	}
	for _, component := range slices.Sorted(maps.Keys(i.Ill)) {
		f := newFinding(lrn, component, i.Ill[component])
		f.Ill = true
		all = append(all, f)
	}

	return all
}

// nextIdle decides the leader's action while no update runs. It reports new findings before it starts an
// update, so that the alert about them comes first.
func (s Snapshot) nextIdle(now time.Time) Action {
	found := record.NewDegraded(s.Findings(now))
	tellAt := s.tellAt(found)
	// Two records without findings are equal, even if only one of the slices is nil.
	hasChanged := found.Count()+s.Degraded.Count() > 0 && !reflect.DeepEqual(found, s.Degraded)
	mustTell := !tellAt.IsZero() && !now.Before(tellAt)
	// Changed findings are recorded at once, and their alert is written from tellAt on.
	if hasChanged || mustTell {
		return s.reportDegraded(now, found, tellAt)
	}

	// A request for a repair that is not possible or has nothing to do is removed.
	if s.Repair != nil && (!s.canRepair() || len(s.findingsToRepair(now)) == 0) {
		return Action{
			Verb:    Warn,
			Why:     "no repair: nothing differs, or a worker is not running",
			Changes: []updater.Change{updater.Remove(keys.Repair)},
		}
	}

	// Missing space is reported before the decision about an update, which then only waits.
	if a, isNews := s.reportNoRoom(now); isNews {
		return a
	}

	a := s.nextRequest(now)
	if a.Verb == Start && !tellAt.IsZero() {
		// The alert must not wait any longer, since it must come before that of the update.
		return s.reportDegraded(now, found, now)
	}

	if a.Verb != Wait {
		return a
	}

	// The wait must also end when findings must be reported, and when a server begins to count as absent.
	wakeTimes := []time.Time{tellAt}
	for _, since := range s.Absent {
		wakeTimes = append(wakeTimes, since.Add(absenceTimeout))
	}
	for _, wake := range wakeTimes {
		isEarlier := a.Until.IsZero() || wake.Before(a.Until)
		if wake.After(now) && isEarlier {
			a.Until = wake
		}
	}

	return a
}

// tellAt returns the time at which the unreported findings must be reported. It returns zero if all findings
// were reported. Findings about components wait for one survey interval, in which each worker
// inspects its server once, so that one report covers all servers.
func (s Snapshot) tellAt(found record.Degraded) (at time.Time) {
	for _, f := range found.Findings {
		if !f.Untold {
			continue
		}

		due := f.Since
		if f.Component != "" {
			due = due.Add(s.Config.SurveyInterval)
		}
		if at.IsZero() || due.Before(at) {
			at = due
		}
	}

	return at
}

// splitUntold returns all findings marked as reported in told, and the findings that were not reported yet in
// news.
func splitUntold(found record.Degraded) (told, news record.Degraded) {
	told = found
	told.Findings = slices.Clone(found.Findings)
	for i, f := range told.Findings {
		if f.Untold {
			news.Findings = append(news.Findings, f)
		}
		told.Findings[i].Untold = false
	}

	// The record does not show which of the findings that did not fit are new. They are counted with each report.
	if len(news.Findings) > 0 {
		news.More = found.More
	}

	return told, news
}

// reportDegraded records the findings. Once tellAt has come, it also writes one alert about the findings
// that are not reported yet. A zero tellAt never comes.
func (s Snapshot) reportDegraded(now time.Time, found record.Degraded, tellAt time.Time) Action {
	a := Action{Verb: Warn, Why: "all servers match the last update again"}
	if found.Count() > 0 {
		a.Why = describeFindings(found)
	}

	var news record.Degraded
	if !tellAt.IsZero() && !now.Before(tellAt) {
		found, news = splitUntold(found) // the recorded findings now count as reported
	}

	a.Changes = []updater.Change{updater.Put(keys.Degraded, found)}
	if len(news.Findings) == 0 {
		return a
	}

	var servers []int
	for _, f := range news.Findings {
		servers = append(servers, f.Server)
	}

	message := withHint("degraded: "+describeFindings(news), s.findingsHint(news.Findings))
	alert := record.Alert{
		ID:      fmt.Sprintf("degraded-%d", now.UnixNano()),
		Kind:    record.AlertDegraded,
		Servers: record.Blame(record.SortServers(servers)),
		Version: s.LastVersion(),
		Message: record.Shorten(message, maxMessage),
		At:      now,
	}

	a.Changes = append(a.Changes, updater.Put(keys.Alert(alert.ID), alert))
	return a
}

// canRepair reports whether an update to the same version can repair the findings. A repair needs all
// workers.
func (s Snapshot) canRepair() bool {
	if s.Current == nil || !s.Current.Succeeded() || len(s.Degraded.Findings) == 0 {
		return false
	}
	for _, lrn := range s.Servers {
		if _, isAlive := s.Present[lrn]; !isAlive {
			return false
		}
	}
	return true
}

// repairCooldown is how long a repair must last. If a finding about the same component appears within that
// time after a repair, the repair counts as failed.
const repairCooldown = time.Hour

// repairReason returns the reason for a repair, or "" if there is none. A finding that remains after a
// repair, or comes back soon, is repaired again only at an operator's request.
func (s Snapshot) repairReason() (by string) {
	last := s.Current
	// notTriedYet is called only if canRepair is true. Then last has succeeded, so its EndedAt is set.
	notTriedYet := func(f record.Finding) bool {
		wasSkipped := len(last.Components) > 0 && !slices.Contains(last.Components, f.Component)
		cameLater := f.Since.After(last.EndedAt.Add(repairCooldown))
		return !last.Repair || wasSkipped || cameLater
	}

	switch {
	case !s.canRepair():
		return ""
	case s.Repair != nil:
		return byRepair
	case s.Config.Repair == record.RepairAuto && slices.ContainsFunc(s.Degraded.Findings, notTriedYet):
		return byItself
	}

	return ""
}

// findingsToRepair returns the findings that a repair concerns: all of them, or only those about the servers
// that an operator has named. It looks at all findings, since the record may hold only some of them.
func (s Snapshot) findingsToRepair(now time.Time) []record.Finding {
	found := s.Findings(now)
	if s.Repair == nil || len(s.Repair.Servers) == 0 {
		return found
	}
	return slices.DeleteFunc(found, func(f record.Finding) bool {
		return !slices.Contains(s.Repair.Servers, f.Server)
	})
}

// repairComponents returns the components to repair. It returns nil, which stands for all components, if a
// server's worker itself differs, since the state of its components is then unknown. It also returns nil if there
// is no finding to repair.
func (s Snapshot) repairComponents(now time.Time) (names []string) {
	for _, f := range s.findingsToRepair(now) {
		if f.Component == "" {
			return nil
		}
		names = append(names, f.Component)
	}

	slices.Sort(names)
	return slices.Compact(names)
}
