// Package decide makes the decisions of an update. Its functions are pure: each takes a Snapshot of the store
// at one revision. Next returns the leader's next action. Recover, Retry, Halt and Unregister return the
// changes that carry out an operator's command. ServersAtFault finds the servers that block an update.
//
// Load reads a Snapshot. A leader adds its Observations, such as how long a server has been absent. The
// package writes nothing, and sees only those facts about workers that the workers have written to the store.
package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// Next decides the leader's next action. While an update runs, s must contain the leader's observations up to
// the time now.
func Next(s Snapshot, now time.Time) Action {
	r := s.Current
	switch {
	case r == nil || r.Succeeded():
		return s.nextIdle(now)
	case r.Stop && !r.Ended():
		// Another program has set Stop in the request, without the report that Halt writes.
		return s.stopRequest(now, noServers, cmp.Or(r.Why, stoppedByHand))
	case r.Stop:
		// Only an operator can continue.
		return newWaitForChange("stopped: " + r.Why)
	}

	return s.nextWhileRunning(now)
}

// nextRequest decides whether to start an update now. It waits if there is no server, no version to install, not
// enough free space for it, or a pause. It also waits while the version is refused, or while the digests of its
// files are not yet known or not accepted. An automatic update also waits for the update window, unless an operator
// has requested that the next update begins even if the window is closed.
func (s Snapshot) nextRequest(now time.Time) Action {
	// An update would wait in vain for a server whose worker has never been seen.
	s = s.withSeenServers()
	if len(s.Servers) == 0 {
		return newWaitForChange("no worker of a registered boot server has ever been seen")
	}

	to, by, why := s.dueVersion()
	noRoom := s.NoRoom(now)
	needsWindow := isAutomatic(by) && !s.Hurry
	window := s.Config.Window

	switch {
	case to == "":
		return newWaitForChange(why)
	case noRoom != nil:
		return newWait(s.roomIsKnownUntil(now), noRoom.String())
	case s.Pause != nil && s.Pause.IsOn(now):
		a := newWaitForChange("paused: " + s.Pause.Why)
		if s.Pause.Until != nil {
			a.Until = *s.Pause.Until
		}
		return a
	case needsWindow && s.Config.WindowFault != "":
		return newWaitForChange(
			"cannot parse the update window, so it never opens: " + s.Config.WindowFault)
	case needsWindow && window != nil && !window.IsOpen(now):
		opens := window.NextOpening(now)
		return newWait(opens, "the update window opens at "+opens.Format(time.RFC3339))
	}

	digests, why := s.releaseDigests(to)
	if why != "" {
		return newWaitForChange(why)
	}

	return s.startRequest(now, to, by, digests)
}

// The reasons for a request, in History.By.
const (
	byRelease  = "release"      // a newer release
	byOperator = "operator"     // an operator's request for a version
	byServers  = "servers"      // a change of the registered servers
	byRecovery = "recover"      // a recovery from a stopped update
	byRepair   = "repair"       // an operator's request for a repair
	byItself   = "repair: auto" // a repair that no operator has requested
)

// isAutomatic reports whether the updater itself decided on the request. Such a request waits for the
// update window.
func isAutomatic(by string) bool { return by == byRelease || by == byServers || by == byItself }

// dueVersion returns the version to install now. by is the reason to install it, as in History.By. If there is
// nothing to install, to is empty, and why is the reason.
func (s Snapshot) dueVersion() (to, by, why string) {
	to, by, why = s.OfferedVersion()

	switch {
	case to == "" && s.Repair != nil && s.repairReason() != "":
		// An operator's repair installs the servers' own version, so it needs no release.
		return s.Current.Version, byRepair, ""
	case to == "":
		return "", "", why
	case s.Current == nil && s.Recovery != nil:
		// A new update always begins, since the stopped one may have left servers with different versions.
		return to, byRecovery, ""
	case s.Current == nil || !release.Same(to, s.Current.Version):
		return to, by, ""
	case s.acceptsReplacedFiles():
		return s.Current.Version, byOperator, ""
	case s.Replaced() != "":
		return "", "", s.Replaced()
	case !slices.Equal(record.SortServers(s.Servers), record.SortServers(s.Current.Servers)):
		// Servers were added or removed since the last update.
		return s.Current.Version, byServers, ""
	case s.repairReason() != "":
		return s.Current.Version, s.repairReason(), ""
	}

	return "", "", UpToDate + ": " + s.Current.Version
}

// OfferedVersion returns the version that the servers should have. That is the operator's target, if there is
// one and no newer release has outdated it. Otherwise it is the newest release, or the version of the current
// request if that release is older. The version is never older than the servers' version, unless the operator has
// allowed a downgrade. by says whether the version comes from the operator or from a release. If there is no
// version, to is empty, and why is the reason.
func (s Snapshot) OfferedVersion() (to, by, why string) {
	if t := s.Target; t != nil && !s.isOutdated(*t) {
		if s.isOlder(t.Version) && !t.Downgrade {
			return "", "", fmt.Sprintf("%s was requested, but servers run %s, and the request does not allow a downgrade",
				t.Version, s.currentVersion())
		}
		return t.Version, byOperator, ""
	}

	switch {
	case s.Config.SourceFault != "":
		return "", "", "no updates: " + s.Config.SourceFault
	case !s.takesReleases():
		return "", "", "env is none, so there are no updates"
	case s.Release == "":
		return "", "", "no release is known yet"
	case s.isOlder(s.Release) && s.Current == nil:
		return "", "", fmt.Sprintf("the newest release, %s, is older than %s, which the servers run",
			s.Release, s.currentVersion())
	case s.isOlder(s.Release):
		// An older release is no reason to go back, so the servers should keep their version.
		return s.Current.Version, byRelease, ""
	}

	return s.Release, byRelease, ""
}

// isOutdated reports whether a release has appeared that is newer than all releases at the time of the
// operator's command.
func (s Snapshot) isOutdated(t record.Target) bool {
	return s.takesReleases() && release.Newer(s.Release, t.Passed)
}

// takesReleases reports whether the configuration allows the servers to install releases.
func (s Snapshot) takesReleases() bool {
	return s.Config.Env == record.EnvProduction || s.Config.Env == record.EnvStaging
}

// isOlder reports whether the version is older than the servers' version.
func (s Snapshot) isOlder(version string) bool { return release.Newer(s.currentVersion(), version) }

// currentVersion returns the version that the servers have, as far as the leader knows. After a recovery, it
// returns the version before the failed update. The publisher may have withdrawn the failed release, so servers
// must also accept an earlier release, down to that version.
func (s Snapshot) currentVersion() string {
	if s.Current == nil && s.Recovery != nil {
		return s.Recovery.Was
	}
	return cmp.Or(s.LastVersion(), s.OwnVersion)
}

// Refusal explains why the leader would not install the version that an operator requests, because the version is
// older than that of the servers. It returns "" for any other version, and if downgrade is set, which says that the
// operator allows an older version.
func (s Snapshot) Refusal(version string, downgrade bool) string {
	if !s.isOlder(version) || downgrade {
		return ""
	}
	return fmt.Sprintf("%s is older than %s, which the servers run", version, s.currentVersion())
}

// LastVersion returns the version of the last update, even if the update has failed, since some servers may
// have that version. It returns "" if there was no update.
func (s Snapshot) LastVersion() string {
	if s.Current != nil {
		return s.Current.Version
	}
	return s.LastTo
}

// startRequest returns the action that starts an update to the version, for the reason by. The action writes
// the request, its entry in the history and an alert. It also removes the operators' requests and the records that
// the update makes obsolete.
func (s Snapshot) startRequest(now time.Time, to, by string, digests record.Digests) Action {
	// byItself means that the updater repairs the servers without a request of an operator.
	isRepair := by == byRepair || by == byItself
	id := s.LastID + 1
	r := record.Request{
		Version:   to,
		Digests:   digests,
		Servers:   record.SortServers(s.Servers),
		ID:        id,
		Attempt:   1,
		StartedAt: now,
		AttemptAt: now,
		Repair:    isRepair,
	}
	if r.Repair {
		r.Components = s.repairComponents(now)
	}

	h := record.History{
		ID:        id,
		By:        by,
		From:      s.currentVersion(),
		To:        to,
		Servers:   r.Servers,
		StartedAt: now,
		Who:       s.requester(by),
	}
	why := fmt.Sprintf("update of %s to %s (%s)", record.ListSomeServers(r.Servers), to, by)
	if s.Recovery != nil && release.Newer(s.Recovery.Failed, to) {
		// The servers return from the failed version to an earlier one.
		h.Left = s.Recovery.Failed
		why += ", back from " + s.Recovery.Failed + ", which failed"
	}
	h.Begin(r.Attempt, h.Who, now)

	// The alert is about the new request, which is not in s yet.
	alert := Snapshot{Current: &r}.newAlert(now, record.AlertStarted, why+" begins")
	changes := []updater.Change{
		updater.Put(keys.Current, r),
		updater.Put(keys.History(id), h),
		updater.Put(keys.Alert(alert.ID), alert),
	}
	return Action{Verb: Start, Why: why, Changes: append(changes, s.removeObsolete(to)...)}
}

// requester returns the operator who has requested an update for the reason by, or "" if none has.
func (s Snapshot) requester(by string) string {
	switch {
	case by == byOperator && s.Target != nil:
		return s.Target.Who
	case by == byRecovery && s.Recovery != nil:
		return s.Recovery.By
	case by == byRepair:
		// dueVersion returns byRepair only if Repair is set.
		return s.Repair.Who
	}

	return ""
}

// removeObsolete returns the changes that remove the operators' requests and the records that a new update to
// the given version makes obsolete. A target of a different version is also removed. Otherwise the target would
// take effect again when the configuration changes.
func (s Snapshot) removeObsolete(to string) []updater.Change {
	var changes []updater.Change
	removeIf := func(isObsolete bool, key string) {
		if isObsolete {
			changes = append(changes, updater.Remove(key))
		}
	}

	removeIf(s.Recovery != nil, keys.Recovery)
	removeIf(s.ToldNoRoom != nil, keys.NoRoom)
	removeIf(s.Hurry, keys.Hurry)
	removeIf(s.Repair != nil, keys.Repair)
	removeIf(s.Target != nil && !release.Same(s.Target.Version, to), keys.Target)
	return changes
}

// releaseDigests returns the digests for a request to install version to. If no request can be made, why is the
// reason. Without a source of releases, the digests are empty, since there are no files to compare.
func (s Snapshot) releaseDigests(to string) (d record.Digests, why string) {
	r := s.Current
	switch {
	case !s.Config.HasSource():
		return d, ""
	case s.Replaced() != "":
		return d, s.Replaced()
	case s.RefusalOf(to) != nil:
		return d, fmt.Sprintf("release %s is refused: %s", to, s.RefusalOf(to).Why)
	case s.IsChecked(to):
		return s.Published.Digests, ""
	case r != nil && r.Sums != "" && release.Same(r.Version, to):
		// The servers' own release may no longer be published, so its digests come from the last update.
		return r.Digests, ""
	}

	return d, "the leader has not yet looked up the files of release " + to
}

// IsChecked reports whether the leader has recorded the digests of the version, and has found that the version
// can be installed. Leaders of earlier versions recorded digests without this check. Such digests count only if
// no server must install the version, as reported by IsEverywhere.
func (s Snapshot) IsChecked(version string) bool {
	p := s.Published
	if p == nil || !release.Same(p.Version, version) {
		return false
	}
	return p.Checked != "" || s.IsEverywhere(version)
}

// RefusalOf returns the reason why the release of the given version cannot be installed. It returns nil if the
// release can be installed, or if the leader has not checked the release.
func (s Snapshot) RefusalOf(version string) *record.Refusal {
	for _, r := range s.Refused.Releases {
		if release.Same(r.Version, version) {
			return &r
		}
	}
	return nil
}

// Refusals returns the refused releases that matter to the servers: releases newer than their version, and the
// release that they should have, which can be an older one if an operator has requested it.
func (s Snapshot) Refusals() (all []record.Refusal) {
	to, _, _ := s.OfferedVersion()
	for _, r := range s.Refused.Releases {
		if s.IsNews(r.Version) || release.Same(r.Version, to) {
			all = append(all, r)
		}
	}

	return all
}

// IsNews reports whether the version is newer than the servers' version.
func (s Snapshot) IsNews(version string) bool { return release.Newer(version, s.currentVersion()) }

// IsEverywhere reports whether all registered servers have that version, so that no server must install it.
// It also returns true if the running or last update is to that version, or if no server is registered.
func (s Snapshot) IsEverywhere(version string) bool {
	if s.Current != nil && release.Same(s.Current.Version, version) {
		return true
	}
	return !slices.ContainsFunc(s.Servers, func(lrn int) bool {
		return !release.Same(s.Present[lrn].Version, version)
	})
}

// Replaced returns an explanation if the files of a release were replaced by different files under the same
// version, after servers have installed the release or an operator has requested it. It returns "" if no files
// were replaced.
func (s Snapshot) Replaced() string {
	p := s.Published
	if p == nil {
		return ""
	}

	// An operator who requests a version accepts the files that are published at that time.
	accepted := "" // the digest of the accepted files, or "" if none is known
	if s.Current != nil && release.Same(s.Current.Version, p.Version) {
		accepted = s.Current.Sums
	}
	if t := s.Target; t != nil && t.Sums != "" && release.Same(t.Version, p.Version) {
		accepted = t.Sums
	}
	if !record.Differ(accepted, p.Sums) {
		return ""
	}

	return fmt.Sprintf("the files of release %s were replaced: the digest of its %s is %s now, not %s; publish them as a different version, or accept them: neco update --to %s",
		p.Version, release.SumsFile, record.ShortDigest(p.Sums), record.ShortDigest(accepted), p.Version)
}

// acceptsReplacedFiles reports whether the files of the servers' release were replaced, and an operator has
// accepted the new files by requesting the same version again. There must be a current request.
func (s Snapshot) acceptsReplacedFiles() bool {
	r := s.Current
	t := s.Target
	p := s.Published
	if t == nil || p == nil {
		return false
	}

	isSameVersion := release.Same(t.Version, r.Version) && release.Same(p.Version, r.Version)
	wereReplaced := record.Differ(r.Sums, p.Sums)
	isAccepted := t.Sums != "" && t.Sums == p.Sums
	return isSameVersion && wereReplaced && isAccepted
}
