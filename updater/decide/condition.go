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
	UpToDate = "up to date" // nothing has to be done, or nothing may be
	Updating = "updating"
	Stopped  = "stopped"  // an update is, or a recovery waits
	Degraded = "degraded" // something is not as it should be, and needs an operator
)

// Condition is how a fleet is.
type Condition struct {
	State    string
	Why      string
	Hint     string    // what to type, and when; "": nothing
	Troubles []Trouble // of a fleet that is degraded, the first of which is in Why and Hint
}

// String returns the reason, with the command to type.
func (c Condition) String() string { return withHint(c.Why, c.Hint) }

// Trouble is one thing for which a fleet needs an operator while no update runs.
type Trouble struct {
	Why  string
	Hint string // what to type, and when
}

func withHint(why, hint string) string {
	if why == "" || hint == "" {
		return why + hint
	}
	return why + "; " + hint
}

// Condition judges the fleet. leads reports whether an updater leads. Without a leader nobody has watched
// for how long servers are absent, so that Condition judges by the present moment.
func (s Snapshot) Condition(now time.Time, leads bool) Condition {
	r := s.Current
	switch {
	case r != nil && r.Stop:
		return Condition{State: Stopped, Why: r.Why, Hint: s.stopHint(s.Entry.AtFault, r.Why)}
	case r != nil && !r.Ended():
		return s.conditionWhileRunning(leads)
	}

	// Only the leader knows since when servers are absent: here no finding is news.
	judged := s
	judged.Degraded = record.NewDegraded(s.Findings(now))
	for i := range judged.Degraded.Findings {
		judged.Degraded.Findings[i].Untold = false
	}
	a := Next(judged, now)

	c := Condition{State: UpToDate, Why: strings.TrimPrefix(a.Why, UpToDate+": ")}
	if a.Verb == Start {
		c = Condition{State: Updating, Why: a.Why + " is about to start"}
	}

	// A server in trouble needs an operator even if an update begins. A release in trouble is one that does
	// not begin.
	c.Troubles = s.fleetTroubles(now, leads)
	if c.State == UpToDate {
		c.Troubles = append(c.Troubles, s.releaseTroubles(now)...)
	}

	if r == nil && s.Recovery != nil && a.Verb != Start {
		return Condition{State: Stopped, Why: "recovery waits: " + a.Why, Hint: s.recoveryHint(now)}
	}

	if len(c.Troubles) > 0 {
		c.State = Degraded
		c.Why = c.Troubles[0].Why
		c.Hint = c.Troubles[0].Hint
	}

	return c
}

// conditionWhileRunning judges the fleet during an update. It names the first obstacle, if there is one.
func (s Snapshot) conditionWhileRunning(leads bool) Condition {
	r := s.Current
	c := Condition{State: Updating, Why: "update to " + r.Version + " runs"}

	switch g := s.recordedGate(); {
	case len(s.Servers) > 0 && len(s.Present) == 0 && !leads:
		t := deadFleet()
		return Condition{State: Degraded, Why: c.Why + ", but " + t.Why, Hint: t.Hint}
	case !leads:
		t := leaderless()
		c.Why += ", but " + t.Why
		c.Hint = t.Hint
	case len(r.Missing) > 0:
		c.Why += ", but no worker is alive on server " + record.ListSomeServers(r.Missing) + s.describeSteps(r.Missing)
		c.Hint = workerHint(r.Missing)
	case g.Slow && s.isStageRecorded():
		atFault, why := s.describeStall()
		c.Why += ", but nothing moves: " + why
		c.Hint = diagnoseHint(atFault)
	}

	return c
}

// LeaderIsDueBy returns until when a missing leader is no trouble, because the last one has just made way for
// another. It returns zero if none has.
func (s Snapshot) LeaderIsDueBy(now time.Time) time.Time {
	if s.HandedOver == nil {
		return time.Time{}
	}

	// The clocks of this host and of that leader's may differ.
	due := s.HandedOver.At.Add(keyspace.SessionTTL)
	if !now.Before(due) || due.Sub(now) > 2*keyspace.SessionTTL {
		return time.Time{}
	}

	return due
}

// describeSteps tells at which step the first of the servers is.
func (s Snapshot) describeSteps(lrns []int) string {
	w, ok := s.workerRecord(lrns[0])
	if !ok || w.StepName == "" {
		return ""
	}
	return fmt.Sprintf(", at step %s", w.StepName)
}

// fleetTroubles returns the troubles of servers, workers and updaters.
func (s Snapshot) fleetTroubles(now time.Time, leads bool) (all []Trouble) {
	if len(s.Servers) == 0 {
		return nil
	}

	switch {
	case leads:
		// A leader is there.
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

// CurrentFindings returns the findings that the leader has recorded. Without a leader it returns those of
// the present moment.
func (s Snapshot) CurrentFindings(now time.Time, leads bool) record.Degraded {
	if leads {
		return s.Degraded
	}

	s.Absent = map[int]time.Time{}
	for _, lrn := range s.Servers {
		if _, here := s.Present[lrn]; !here {
			s.Absent[lrn] = time.Time{}
		}
	}

	return record.Degraded{Findings: s.Findings(now)}
}

func deadFleet() Trouble {
	return Trouble{
		Why:  "no neco-updater and no neco-worker is alive",
		Hint: "on each boot server type: systemctl start neco-updater neco-worker",
	}
}

func leaderless() Trouble {
	return Trouble{
		Why:  "no neco-updater leads: nothing begins, and no alert is sent",
		Hint: "on a boot server type: systemctl start neco-updater",
	}
}

// describeFindings returns all findings as one text.
func describeFindings(found record.Degraded) string {
	var reasons []record.Reason
	for _, f := range found.Findings {
		reasons = append(reasons, record.Reason{Server: f.Server, Where: f.Component, Why: f.What})
	}

	why := record.JoinReasons(reasons, maxFailed)
	if found.More > 0 {
		why += fmt.Sprintf("; and %d findings more", found.More)
	}
	return why
}

// findingsHint returns the hint for findings. Somebody must start a worker that is away before a repair,
// since a repair needs all workers.
func (s Snapshot) findingsHint(found []record.Finding) string {
	var away []int
	repairable := false
	for _, f := range found {
		if f.Component == "" && s.isAway(f.Server) {
			away = append(away, f.Server)
			continue
		}
		repairable = true
	}

	switch {
	case len(away) == 0:
		return "to put that right: neco repair"
	case repairable:
		return workerHint(away) + "; for the rest, after that: neco repair"
	}

	return workerHint(away)
}

// twinTroubles returns a trouble for each server whose number two hosts use.
func (s Snapshot) twinTroubles() (all []Trouble) {
	for _, lrn := range s.Servers {
		t, ok := s.Twins[lrn]
		if !ok {
			continue
		}

		all = append(all, Trouble{
			Why: fmt.Sprintf("two hosts go by server %d, and %s does not work: %s", lrn, t, t.Why),
			Hint: fmt.Sprintf("if the other one is gone for good: neco bootserver remove %d; neco bootserver add %d",
				lrn, lrn),
		})
	}

	return all
}

// releaseTroubles returns the reasons for which servers do not get a release, or have one that they must
// not have.
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
			Why:  "the update window cannot be read, so that it never opens: " + s.Config.WindowFault,
			Hint: "to remove it: neco config unset update-window",
		})
	}

	for _, r := range s.Refusals() {
		all = append(all, refusedTrouble(r))
	}
	if n := s.NoRoom(now); n != nil {
		all = append(all, noRoomTrouble(*n))
	}
	switch f := s.CheckFailure; {
	case s.Config.SourceFault != "": // said already
	case s.Outage() != nil:
		all = append(all, outageTrouble(*f, SourceHint(s.Config)))
	case s.isMissed():
		all = append(all, missedTrouble(*f))
	}
	if w := s.WithdrawnRelease(); w != nil {
		all = append(all, withdrawnTrouble(*w))
	}

	return all
}

// Outage explains why all looks for releases have failed in a long time; nil if they have not, or if no
// releases are taken.
func (s Snapshot) Outage() *record.CheckFailure {
	f := s.CheckFailure
	if f == nil || !s.Config.WantsReleases() || !f.IsOverdue(s.Config.MaxCheckAge) {
		return nil
	}
	return f
}

// SourceHint returns the command to type if releases cannot be looked for with that configuration.
func SourceHint(c record.Config) string {
	if key, _, ok := strings.Cut(c.SourceFault, " "); ok {
		return "to remove it: neco config unset " + key
	}
	return "see that neco config list says where releases are, and type: neco update --now"
}

// isMissed reports whether the release that servers would take next cannot be had.
func (s Snapshot) isMissed() bool {
	f := s.CheckFailure
	if f == nil || f.Refused == "" || !s.takesReleases() {
		return false
	}
	to, _, _ := s.OfferedVersion()
	return release.Same(to, f.Refused) && s.IsNews(f.Refused)
}

// WithdrawnRelease describes a release that servers have and that is newer than all published ones; nil if
// there is none, or if no releases are taken.
func (s Snapshot) WithdrawnRelease() *record.Withdrawn {
	w := s.Withdrawn
	if w == nil || !s.takesReleases() || s.Current == nil || s.Current.Version != w.Version {
		return nil
	}
	return w
}

// refusedTrouble describes a release that cannot be installed.
func refusedTrouble(r record.Refusal) Trouble {
	return Trouble{
		Why:  fmt.Sprintf("release %s is refused: %s", r.Version, r.Why),
		Hint: "publish a newer one, which is taken by itself, or mend this one and type: neco update --now",
	}
}

func noRoomTrouble(n record.NoRoom) Trouble {
	return Trouble{
		Why:  n.String(),
		Hint: "make room there, and it begins by itself; to see what is free: neco diagnose LRN",
	}
}

func outageTrouble(f record.CheckFailure, hint string) Trouble {
	return Trouble{
		Why: fmt.Sprintf("no release could be looked for since %s, in %d tries: %s",
			f.Since.UTC().Format(time.RFC3339), f.Tries, f.Message),
		Hint: hint,
	}
}

func missedTrouble(f record.CheckFailure) Trouble {
	return Trouble{
		Why:  fmt.Sprintf("release %s is not taken: %s", f.Refused, f.Message),
		Hint: "once that is put right: neco update --now",
	}
}

// withdrawnTrouble describes that servers have a release that is no longer published.
func withdrawnTrouble(w record.Withdrawn) Trouble {
	if w.Newest == "" {
		return Trouble{
			Why:  fmt.Sprintf("servers have %s, and no release is published", w.Version),
			Hint: "see that neco config list says where releases are, and type: neco update --now",
		}
	}

	return Trouble{
		Why: fmt.Sprintf("servers have %s, which is published no more, and newer than all that are: the newest is %s",
			w.Version, w.Newest),
		Hint: fmt.Sprintf("publish a newer one, or go back: neco update --to %s --allow-downgrade", w.Newest),
	}
}

// RefusedAlert returns the words of the report of a refused release.
func RefusedAlert(r record.Refusal) string {
	t := refusedTrouble(r)
	return withHint(t.Why, t.Hint)
}

// stopHint returns a hint on how to continue a stopped update. The update was stopped because of the
// servers atFault.
func (s Snapshot) stopHint(atFault []int, why string) string {
	if s.Current != nil && len(s.unregisteredServers()) > 0 {
		return fmt.Sprintf("server %s is registered no more, so make the update again: neco recover",
			record.ListSomeServers(s.unregisteredServers()))
	}

	away := slices.DeleteFunc(slices.Clone(atFault), func(lrn int) bool { return !s.isAway(lrn) })
	switch {
	case len(away) > 0:
		return fmt.Sprintf(
			"start neco-worker on server %s and type: neco retry; if it is gone for good: neco bootserver remove %s; neco recover",
			record.ListSomeServers(away), argsOf(away))
	case strings.HasPrefix(why, byHandPrefix) || why == stoppedByHand:
		return "to go on: neco retry; for the newest release instead: neco recover"
	}

	return "once that is put right: neco retry; for the newest release instead: neco recover"
}

// isAway reports whether the server has no worker alive, as far as that was read.
func (s Snapshot) isAway(lrn int) bool {
	if s.Present == nil {
		return false
	}
	_, here := s.Present[lrn]
	return !here
}

// recoveryHint returns the command that ends the wait of a recovery.
func (s Snapshot) recoveryHint(now time.Time) string {
	switch {
	case s.Pause != nil && s.Pause.IsOn(now):
		return "to let it begin: neco resume"
	case s.Config.SourceFault == "" && !s.takesReleases():
		return "to let it begin: neco config set env production"
	}
	return ""
}

func workerHint(lrns []int) string {
	return fmt.Sprintf("on server %s type: systemctl start neco-worker; if it is gone for good: neco bootserver remove %s",
		record.ListSomeServers(lrns), argsOf(lrns))
}

func diagnoseHint(lrns []int) string {
	if len(lrns) == 0 {
		return "to see more: neco status"
	}
	return fmt.Sprintf("to see more, on server %d: neco diagnose", lrns[0])
}

// maxArgs is how many servers a command in a hint has.
const maxArgs = 20

// argsOf returns the servers as arguments of a command, or LRN... if they are many.
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
