package decide

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/keyspace"
	"bijou/updater/record"
	"bijou/updater/release"
)

// The states of a fleet.
const (
	UpToDate = "up to date" // there is nothing to do, or updates are not allowed
	Updating = "updating"
	Stopped  = "stopped"  // an update was stopped, or a recovery waits
	Degraded = "degraded" // something is wrong, and needs an operator
)

// Condition is the overall state of a fleet.
type Condition struct {
	State    string
	Why      string
	Hint     string    // a command to type and the time to type it, or ""
	Troubles []Trouble // the reasons for Degraded; the first one is also in Why and Hint
}

// String returns the reason, with the command to type.
func (c Condition) String() string { return withHint(c.Why, c.Hint) }

// Trouble is one problem that needs an operator.
type Trouble struct {
	Why  string
	Hint string // a command to type, and when to type it
}

// withHint joins a reason and a hint to one text. Either can be "".
func withHint(why, hint string) string {
	if why == "" || hint == "" {
		return why + hint
	}
	return why + "; " + hint
}

// Condition judges the fleet. leads says whether an updater leads at the moment. Without a leader, nobody has
// measured how long servers have been absent. In that case each server that is absent now counts as a problem.
func (s Snapshot) Condition(now time.Time, leads bool) Condition {
	r := s.Current
	switch {
	case r != nil && r.Stop:
		return Condition{State: Stopped, Why: r.Why, Hint: s.stopHint(s.Entry.AtFault, r.Why)}
	case r != nil && !r.Ended():
		return s.conditionWhileRunning(leads)
	}

	a := s.nextIgnoringFindings(now)
	isStarting := a.Verb == Start
	// After a recovery, servers may have different versions until the next update, so this wait is a problem.
	if r == nil && s.Recovery != nil && !isStarting {
		return Condition{State: Stopped, Why: "recovery waits: " + a.Why, Hint: s.recoveryHint(now)}
	}

	// A server with a problem needs an operator even if an update begins. A release with a problem matters
	// only if no update begins.
	troubles := s.fleetTroubles(now, leads)
	if !isStarting {
		troubles = append(troubles, s.releaseTroubles(now)...)
	}

	switch {
	case len(troubles) > 0:
		return Condition{State: Degraded, Why: troubles[0].Why, Hint: troubles[0].Hint, Troubles: troubles}
	case isStarting:
		return Condition{State: Updating, Why: a.Why + " is about to start"}
	}

	// A reason from dueVersion can begin with the state, which is not repeated.
	return Condition{State: UpToDate, Why: strings.TrimPrefix(a.Why, UpToDate+": ")}
}

// nextIgnoringFindings returns the leader's next action under the assumption that all findings were reported,
// so that Next decides about the update and not about an alert.
func (s Snapshot) nextIgnoringFindings(now time.Time) Action {
	reported := s
	reported.Degraded = record.NewDegraded(s.Findings(now))
	for i := range reported.Degraded.Findings {
		reported.Degraded.Findings[i].Untold = false
	}

	return Next(reported, now)
}

// conditionWhileRunning judges the fleet during an update. It names the first obstacle to the update, if
// there is one. The fleet counts as degraded only if neither a worker nor a leader is alive. leads says whether an
// updater leads at the moment.
func (s Snapshot) conditionWhileRunning(leads bool) Condition {
	r := s.Current
	c := Condition{State: Updating, Why: "update to " + r.Version + " runs"}

	switch {
	case len(s.Servers) > 0 && len(s.Present) == 0 && !leads:
		t := deadFleet()
		return Condition{State: Degraded, Why: c.Why + ", but " + t.Why, Hint: t.Hint}
	case !leads:
		t := leaderless()
		c.Why += ", but " + t.Why
		c.Hint = t.Hint
	case len(r.Missing) > 0:
		c.Why += ", but no worker is alive on server " + record.ListSomeServers(r.Missing) +
			s.describeFirstStep(r.Missing)
		c.Hint = workerHint(r.Missing)
	case s.recordedGate().Slow && s.isStageRecorded():
		// A leader has reported the update as slow, and no server has made progress since.
		atFault, why := s.describeStall()
		c.Why += ", but nothing moves: " + why
		c.Hint = diagnoseHint(atFault)
	}

	return c
}

// LeaderIsDueBy returns the time by which a new leader should be elected, if the last one has just handed
// over. Until then a missing leader is not a problem. It returns zero if no leader has just handed over.
func (s Snapshot) LeaderIsDueBy(now time.Time) time.Time {
	if s.HandedOver == nil {
		return time.Time{}
	}

	// The clocks of this host and of the former leader's host may differ. If due lies too far ahead, the other
	// clock is wrong, and the hand-over may be old.
	due := s.HandedOver.At.Add(keyspace.SessionTTL)
	if !now.Before(due) || due.Sub(now) > 2*keyspace.SessionTTL {
		return time.Time{}
	}

	return due
}

// describeFirstStep returns the step of the first of the servers, as the end of a sentence. It returns "" if
// that step is unknown.
func (s Snapshot) describeFirstStep(lrns []int) string {
	w, ok := s.workerRecord(lrns[0])
	if !ok || w.StepName == "" {
		return ""
	}
	return fmt.Sprintf(", at step %s", w.StepName)
}

// fleetTroubles returns the problems of servers, workers and updaters. It returns none if no server is
// registered. leads says whether an updater leads at the moment.
func (s Snapshot) fleetTroubles(now time.Time, leads bool) (all []Trouble) {
	if len(s.Servers) == 0 {
		return nil
	}

	switch {
	case leads:
		// There is a leader, so this is no problem.
	case len(s.Present) == 0:
		all = append(all, deadFleet())
	default:
		all = append(all, leaderless())
	}

	found := s.CurrentFindings(now, leads)
	if found.Count() > 0 {
		all = append(all, Trouble{Why: describeFindings(found), Hint: s.findingsHint(found.Findings)})
	}

	return append(all, s.twinTroubles()...)
}

// CurrentFindings returns the findings that the leader has recorded. Without a leader, it returns the findings
// of the present moment. Among these, a finding that no leader has recorded has a zero time, since nobody knows
// when the finding began.
func (s Snapshot) CurrentFindings(now time.Time, leads bool) record.Degraded {
	if leads {
		return s.Degraded
	}

	// Nobody has measured since when servers are absent. Findings reports only long absences, so each absence
	// is assumed to have begun long ago.
	longAgo := time.Time{}
	assumed := s
	assumed.Absent = map[int]time.Time{}
	for _, lrn := range s.Servers {
		if _, isAlive := s.Present[lrn]; !isAlive {
			assumed.Absent[lrn] = longAgo
		}
	}

	// Findings sets the current time for each finding that is not recorded.
	found := assumed.Findings(now)
	for i := range found {
		if found[i].Since.Equal(now) {
			found[i].Since = time.Time{}
		}
	}
	return record.Degraded{Findings: found}
}

// deadFleet returns the problem of a fleet without a leader and without workers.
func deadFleet() Trouble {
	return Trouble{
		Why:  "no neco-updater and no neco-worker is alive",
		Hint: "on each boot server, run: systemctl start neco-updater neco-worker",
	}
}

// leaderless returns the problem of a fleet that has workers, but no leader.
func leaderless() Trouble {
	return Trouble{
		Why:  "no neco-updater leads: no update begins, and no alert is sent",
		Hint: "on a boot server, run: systemctl start neco-updater",
	}
}

// describeFindings returns the findings as one text, with reasons shortened to about maxFailed bytes in all. It
// counts the findings that did not fit into the record.
func describeFindings(found record.Degraded) string {
	var reasons []record.Reason
	for _, f := range found.Findings {
		reasons = append(reasons, record.Reason{Server: f.Server, Where: f.Component, Why: f.What})
	}

	why := record.JoinReasons(reasons, maxFailed)
	if found.More > 0 {
		why += fmt.Sprintf("; and %d more findings", found.More)
	}
	return why
}

// findingsHint returns the hint for the findings. A repair needs all workers, so the hint first names the
// workers to start.
func (s Snapshot) findingsHint(found []record.Finding) string {
	var away []int
	isAnyRepairable := false
	for _, f := range found {
		isWorkerAway := f.Component == "" && s.isAway(f.Server)
		if isWorkerAway {
			away = append(away, f.Server)
		} else {
			isAnyRepairable = true
		}
	}

	switch {
	case len(away) == 0:
		return "to repair that: neco repair"
	case isAnyRepairable:
		return workerHint(away) + "; then, for the other findings: neco repair"
	}

	return workerHint(away)
}

// twinTroubles returns a problem for each server whose LRN two hosts use.
func (s Snapshot) twinTroubles() (all []Trouble) {
	for _, lrn := range s.Servers {
		twin, ok := s.Twins[lrn]
		if !ok {
			continue
		}

		all = append(all, Trouble{
			Why: fmt.Sprintf("two hosts claim to be server %d, and %s stays idle: %s", lrn, twin, twin.Why),
			Hint: fmt.Sprintf("if the other host is gone for good: neco bootserver remove %d; neco bootserver add %d",
				lrn, lrn),
		})
	}

	return all
}

// releaseTroubles returns the problems with releases: the reasons why servers cannot get a release, or should
// not have the installed one.
func (s Snapshot) releaseTroubles(now time.Time) (all []Trouble) {
	if s.Config.SourceFault != "" {
		all = append(all, Trouble{Why: "no updates: " + s.Config.SourceFault, Hint: SourceHint(s.Config)})
	}
	if s.Config.EnvFault != "" {
		all = append(all, Trouble{
			Why:  "no updates: env cannot be read: " + s.Config.EnvFault,
			Hint: "to set it: neco config set env production",
		})
	}
	if s.Config.WindowFault != "" {
		all = append(all, Trouble{
			Why:  "cannot parse update-window, so it never opens: " + s.Config.WindowFault,
			Hint: "to remove it: neco config unset update-window",
		})
	}

	for _, r := range s.Refusals() {
		all = append(all, refusedTrouble(r))
	}
	if n := s.NoRoom(now); n != nil {
		all = append(all, noRoomTrouble(*n))
	}
	switch {
	case s.Config.SourceFault != "":
		// This is reported above.
	case s.Outage() != nil:
		all = append(all, outageTrouble(*s.Outage(), SourceHint(s.Config)))
	case s.isMissed():
		all = append(all, missedTrouble(*s.CheckFailure))
	}
	if w := s.WithdrawnRelease(); w != nil {
		all = append(all, withdrawnTrouble(*w))
	}

	return all
}

// Outage returns the failure if all checks for releases have failed for a long time. It returns nil
// otherwise, or if the configuration accepts no releases.
func (s Snapshot) Outage() *record.CheckFailure {
	f := s.CheckFailure
	if f == nil || !s.Config.WantsReleases() || !f.IsOverdue(s.Config.MaxCheckAge) {
		return nil
	}
	return f
}

// SourceHint returns the command to type if checks for releases fail with configuration c.
func SourceHint(c record.Config) string {
	// A SourceFault begins with the name of the setting that has the fault.
	if key, _, ok := strings.Cut(c.SourceFault, " "); ok {
		return "to remove it: neco config unset " + key
	}
	return "check the source of releases (neco config list), then run: neco update --now"
}

// isMissed reports whether the release that servers would take next is newer than theirs and cannot be fetched.
func (s Snapshot) isMissed() bool {
	f := s.CheckFailure
	if f == nil || f.Refused == "" || !s.takesReleases() {
		return false
	}
	// Refused can be left from an earlier failure, so servers may want a different release by now.
	to, _, _ := s.OfferedVersion()
	return release.Same(to, f.Refused) && s.IsNews(f.Refused)
}

// WithdrawnRelease returns the installed release if it is newer than all published ones. It returns nil
// otherwise, or if the configuration accepts no releases.
func (s Snapshot) WithdrawnRelease() *record.Withdrawn {
	w := s.Withdrawn
	if w == nil || !s.takesReleases() {
		return nil
	}
	// The record may be about an earlier installed release.
	if s.Current == nil || s.Current.Version != w.Version {
		return nil
	}
	return w
}

// refusedTrouble describes a release that cannot be installed.
func refusedTrouble(r record.Refusal) Trouble {
	return Trouble{
		Why:  fmt.Sprintf("release %s is refused: %s", r.Version, r.Why),
		Hint: "publish a newer release, which servers install automatically; or fix this release, then run: neco update --now",
	}
}

// noRoomTrouble describes servers that do not have enough free space for the next release.
func noRoomTrouble(n record.NoRoom) Trouble {
	return Trouble{
		Why:  n.String(),
		Hint: "free some disk space there, and the update starts automatically; to see the free space: neco diagnose LRN",
	}
}

// outageTrouble describes checks for releases that have failed for too long. hint is the command to type.
func outageTrouble(f record.CheckFailure, hint string) Trouble {
	return Trouble{
		Why: fmt.Sprintf("all checks for releases have failed since %s (%d tries): %s",
			f.Since.UTC().Format(time.RFC3339), f.Tries, f.Message),
		Hint: hint,
	}
}

// missedTrouble describes a release that cannot be fetched now.
func missedTrouble(f record.CheckFailure) Trouble {
	return Trouble{
		Why:  fmt.Sprintf("cannot fetch release %s: %s", f.Refused, f.Message),
		Hint: "after fixing that: neco update --now",
	}
}

// withdrawnTrouble describes a release that servers have although it is newer than all published releases.
func withdrawnTrouble(w record.Withdrawn) Trouble {
	if w.Newest == "" {
		return Trouble{
			Why:  fmt.Sprintf("servers have %s, and no release is published", w.Version),
			Hint: "check the source of releases (neco config list), then run: neco update --now",
		}
	}

	return Trouble{
		Why: fmt.Sprintf("servers run %s, which is no longer published and is newer than every published release; the newest is %s",
			w.Version, w.Newest),
		Hint: fmt.Sprintf("publish a newer release, or go back: neco update --to %s --allow-downgrade", w.Newest),
	}
}

// RefusedAlert returns the message of the alert about a refused release.
func RefusedAlert(r record.Refusal) string {
	t := refusedTrouble(r)
	return withHint(t.Why, t.Hint)
}

// stopHint returns a hint on how to continue a stopped update. atFault are the servers that caused the
// stop, and why is its reason.
func (s Snapshot) stopHint(atFault []int, why string) string {
	if s.Current != nil && len(s.unregisteredServers()) > 0 {
		return fmt.Sprintf("server %s is no longer registered; to start the update again without it: neco recover",
			record.ListSomeServers(s.unregisteredServers()))
	}

	away := slices.DeleteFunc(slices.Clone(atFault), func(lrn int) bool { return !s.isAway(lrn) })
	switch {
	case len(away) > 0:
		return fmt.Sprintf(
			"start neco-worker on server %s, then run: neco retry; if the server is gone for good: neco bootserver remove %s; neco recover",
			record.ListSomeServers(away), argsOf(away))
	case strings.HasPrefix(why, byHandPrefix) || why == stoppedByHand:
		return "to continue: neco retry; to install the newest release instead: neco recover"
	}

	return "after fixing that: neco retry; to install the newest release instead: neco recover"
}

// isAway reports whether the server has no live worker. It returns false if presences were not read.
func (s Snapshot) isAway(lrn int) bool {
	if s.Present == nil {
		return false
	}
	_, isAlive := s.Present[lrn]
	return !isAlive
}

// recoveryHint returns a command that lets a waiting recovery begin, or "" if it knows none.
func (s Snapshot) recoveryHint(now time.Time) string {
	switch {
	case s.Pause != nil && s.Pause.IsOn(now):
		return "to let the update begin: neco resume"
	// With a SourceFault, Env is always none, and a new value of env does not help.
	case s.Config.SourceFault != "":
		return SourceHint(s.Config)
	case !s.takesReleases():
		return "to let updates begin: neco config set env production"
	}
	return ""
}

// workerHint returns the commands to type if servers have no live worker.
func workerHint(lrns []int) string {
	return fmt.Sprintf("on server %s, run: systemctl start neco-worker; if the server is gone for good: neco bootserver remove %s",
		record.ListSomeServers(lrns), argsOf(lrns))
}

// diagnoseHint returns the command that shows more about the first of the servers at fault.
func diagnoseHint(lrns []int) string {
	if len(lrns) == 0 {
		return "to see more: neco status"
	}
	return fmt.Sprintf("to see more, on server %d: neco diagnose", lrns[0])
}

// maxArgs is the maximum number of servers in the command of a hint.
const maxArgs = 20

// argsOf returns the servers as arguments for a command. If there are more than maxArgs, it returns LRN...
// instead.
func argsOf(lrns []int) string {
	if len(lrns) > maxArgs {
		return "LRN..."
	}

	var words []string
	for _, lrn := range record.SortServers(lrns) {
		words = append(words, strconv.Itoa(lrn))
	}
	return strings.Join(words, " ")
}
