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

// Findings returns all that differs from the state that the last update left: servers without a worker,
// workers of a different version or different files, components that differ or are ill. Each finding keeps
// the time when it was first seen.
func (s Snapshot) Findings(now time.Time) []record.Finding {
	found := []record.Finding{}
	put := func(f record.Finding) {
		f.Since = now
		f.Untold = true
		f.What = record.Shorten(f.What, record.MaxReason)
		for _, before := range s.Degraded.Findings {
			if before.Same(f) {
				f.Since = before.Since
				f.Untold = before.Untold
			}
		}
		found = append(found, f)
	}
	add := func(lrn int, component, format string, args ...any) {
		put(record.Finding{Server: lrn, Component: component, What: fmt.Sprintf(format, args...)})
	}

	for _, lrn := range s.Servers {
		p, isAlive := s.Present[lrn]
		r := s.Current
		since, isAbsent := s.Absent[lrn]
		isGone := isAbsent && !now.Before(since.Add(absenceTimeout))

		switch {
		case isGone && slices.Contains(s.Unseen, lrn):
			add(lrn, "", "no worker was ever seen")
		case isGone:
			add(lrn, "", "no worker is alive")
		case r == nil || !r.Succeeded() || !slices.Contains(r.Servers, lrn):
			// The last update has left no state to compare with on this server.
		case !isAlive: // perhaps for a moment: earlier findings stay
			found = append(found, s.findingsOfComponents(lrn, nil)...)
		case !release.Same(p.Version, r.Version):
			add(lrn, "", "its worker is of %s, not of %s", p.Version, r.Version)
		case record.Differ(p.Sums, r.Sums):
			add(lrn, "", "it was installed from other files: the digest of their %s is %s, not %s",
				release.SumsFile, record.ShortDigest(p.Sums), record.ShortDigest(r.Sums))
		case record.Differ(p.Plan, r.Plan):
			add(lrn, "", "its plan is another one: its digest is %s, not %s", record.ShortDigest(p.Plan),
				record.ShortDigest(r.Plan))
		case !s.Workers[lrn].IsFor(*r):
			add(lrn, "", "it has no part in the last update: another server has taken its place")
		case s.Inventories[lrn].Request != r.ID: // nobody has looked yet
			if r.Repair && len(r.Components) > 0 {
				found = append(found, s.findingsOfComponents(lrn, r.Components)...)
			}
		default:
			differs := s.Inventories[lrn].Differs
			for _, component := range slices.Sorted(maps.Keys(differs)) {
				add(lrn, component, "%s", strings.Join(differs[component], "; "))
			}

			for _, f := range illComponents(lrn, s.Inventories[lrn]) {
				put(f)
			}
		}
	}

	return found
}

// findingsOfComponents returns the leader's recorded findings about a server's components, without the
// components that a repair was for.
func (s Snapshot) findingsOfComponents(lrn int, repaired []string) (all []record.Finding) {
	for _, f := range s.Degraded.Findings {
		if f.Server == lrn && f.Component != "" && !slices.Contains(repaired, f.Component) {
			all = append(all, f)
		}
	}
	return all
}

// illComponents returns the server's ill components. It returns none for a worker that does not look at
// them, as a former version's.
func illComponents(lrn int, i record.Inventory) (all []record.Finding) {
	if !i.KnowsHealth() {
		return nil
	}
	for _, component := range slices.Sorted(maps.Keys(i.Ill)) {
		all = append(all, record.Finding{Server: lrn, Component: component, What: i.Ill[component], Ill: true})
	}

	return all
}

// nextIdle decides the leader's action while no update runs. It reports new findings before it starts an
// update, so that the alert about them comes first.
func (s Snapshot) nextIdle(now time.Time) Action {
	found := record.NewDegraded(s.Findings(now))
	tellAt := s.tellAt(found)
	hasChanged := found.Count()+s.Degraded.Count() > 0 && !reflect.DeepEqual(found, s.Degraded)
	mustTell := !tellAt.IsZero() && !now.Before(tellAt)
	if hasChanged || mustTell {
		return s.reportDegraded(now, found, tellAt)
	}

	if s.Repair != nil && !s.canRepair() {
		return Action{
			Verb:    Warn,
			Why:     "no repair: nothing differs, or a worker is away",
			Changes: []updater.Change{updater.Remove(keys.Repair)},
		}
	}

	if a, isNews := s.reportNoRoom(now); isNews {
		return a
	}

	a := s.nextRequest(now)
	if a.Verb == Start && !tellAt.IsZero() {
		return s.reportDegraded(now, found, now)
	}

	wake := []time.Time{tellAt}
	for _, since := range s.Absent {
		wake = append(wake, since.Add(absenceTimeout))
	}
	for _, due := range wake {
		isEarlier := a.Until.IsZero() || due.Before(a.Until)
		if a.Verb == Wait && due.After(now) && isEarlier {
			a.Until = due
		}
	}

	return a
}

// tellAt returns when the findings that no alert has told of must be reported; zero if there are none.
// Findings about components wait for one survey interval, in which each worker looks once, so that one
// report covers all servers.
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

// splitUntold returns the findings with all of them marked as told, and those that no alert has told of yet.
func splitUntold(found record.Degraded) (told, news record.Degraded) {
	told = found
	told.Findings = slices.Clone(found.Findings)
	for i, f := range told.Findings {
		if f.Untold {
			news.Findings = append(news.Findings, f)
		}
		told.Findings[i].Untold = false
	}

	if len(news.Findings) > 0 {
		news.More = found.More
	}

	return told, news
}

// reportDegraded records the findings. Once tellAt has come (zero: never), it also raises one alert about
// the findings that no alert has told of.
func (s Snapshot) reportDegraded(now time.Time, found record.Degraded, tellAt time.Time) Action {
	a := Action{Verb: Warn, Why: "all is as the last update left it again"}
	if found.Count() > 0 {
		a.Why = describeFindings(found)
	}

	var news record.Degraded
	if !tellAt.IsZero() && !now.Before(tellAt) {
		found, news = splitUntold(found)
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

// canRepair reports whether an update to the same version would help, which needs all workers.
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

// repairCooldown is how long after a repair a finding about the same components counts as
// one that the repair did not help.
const repairCooldown = time.Hour

// repairReason returns the reason for a repair; "" is none. A finding that the last repair was
// about, and that is still there or is back soon, is repaired only when an operator asks.
func (s Snapshot) repairReason() (by string) {
	last := s.Current
	notTriedYet := func(f record.Finding) bool {
		isAboutOthers := len(last.Components) > 0 && !slices.Contains(last.Components, f.Component)
		return !last.Repair || isAboutOthers || f.Since.After(last.EndedAt.Add(repairCooldown))
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

// repairComponents returns the components that differ. It returns nil if a server's own worker differs,
// since then nobody knows about its components. It looks at all findings, since the record can hold only a
// part.
func (s Snapshot) repairComponents(now time.Time) (names []string) {
	for _, f := range s.Findings(now) {
		if s.Repair != nil && len(s.Repair.Servers) > 0 && !slices.Contains(s.Repair.Servers, f.Server) {
			continue
		}
		if f.Component == "" {
			return nil
		}
		names = append(names, f.Component)
	}

	slices.Sort(names)
	return slices.Compact(names)
}
