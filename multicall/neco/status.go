package neco

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// These are the exit codes of neco status.
const (
	exitUpdating = 3
	exitStopped  = 4
	exitDegraded = 5
)

type statusCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
	Watch  bool   `short:"w" help:"Show the status again after every change, until interrupted."`
}

// statusDoc is the status in JSON and YAML.
type statusDoc struct {
	Cluster string `json:"cluster,omitempty"`
	State   string `json:"state"`
	Why     string `json:"why,omitempty"`
	// Hints are the commands to type, with the time to type them: first the hints for Why, and then those for
	// other troubles.
	Hints   []string `json:"hints,omitempty"`
	Version string   `json:"version,omitempty"` // the version of the last update
	Release string   `json:"release,omitempty"` // the newest acceptable release
	// Replaced, if set, describes how the files of the servers' release have changed since their update.
	Replaced string `json:"replaced,omitempty"`
	// Refused are releases that servers would install, but that cannot be installed.
	Refused []record.Refusal `json:"refused,omitempty"`
	// NoRoom is the release that servers would install if they had enough disk space.
	NoRoom *record.NoRoom `json:"no-room,omitempty"`
	// Withdrawn is the release of the servers if it is newer than all published releases.
	Withdrawn *record.Withdrawn `json:"withdrawn,omitempty"`
	// ConfigFaults are configuration keys that cannot be read.
	ConfigFaults []string   `json:"config-faults,omitempty"`
	Leader       *leaderDoc `json:"leader,omitempty"`
	// LeaderDue is the time until which a missing leader is normal, since the last leader has just handed
	// over.
	LeaderDue time.Time            `json:"leader-due,omitzero"`
	Target    *record.Target       `json:"target,omitempty"`
	Pause     *record.Pause        `json:"pause,omitempty"`
	CheckFail *record.CheckFailure `json:"check-failure,omitempty"`
	Request   *record.Request      `json:"request,omitempty"`
	Servers   []serverDoc          `json:"servers"`
	Findings  []record.Finding     `json:"findings,omitempty"`
	// MoreFindings is the number of findings that are not in Findings, since the leader records only some.
	MoreFindings int `json:"more-findings,omitempty"`

	revision    int64            // the revision of the store that was read
	changesAt   time.Time        // when the status changes although no record changes, or zero for never
	allFindings []record.Finding // set if there are more findings than the leader records
}

// leaderDoc is the leader's record, as package state writes it.
type leaderDoc struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// serverDoc is a boot server in the status.
type serverDoc struct {
	LRN        int            `json:"lrn"`
	Registered bool           `json:"registered"`
	Alive      bool           `json:"alive"`
	Worker     string         `json:"worker-version,omitempty"`
	InUpdate   bool           `json:"in-update"`
	Seen       *time.Time     `json:"seen-at,omitempty"` // the time of the last known state
	Record     *record.Status `json:"status,omitempty"`
	// Room is the server's free space for files of releases, according to its worker's last report.
	Room []record.Room `json:"room,omitempty"`
	// Ill has the components that do not work, with the reasons. It is nil if this is unknown, and empty if
	// all components work.
	Ill map[string]string `json:"ill,omitzero"`
	// Twin is a host that also claims the server's number, and does nothing.
	Twin *record.Twin `json:"twin,omitempty"`
	// Doing is the server's current task, or the reason why the server waits.
	Doing *record.Activity `json:"doing,omitempty"`
}

// Run prints the status. The exit code depends on the state. With --watch, Run also prints the status again
// whenever it changes, and the exit code does not depend on the state.
func (c statusCmd) Run(o *operator) error {
	if c.Watch {
		return c.watch(o)
	}
	doc, err := read(o, o.readStatus)
	if err != nil {
		return err
	}

	text, err := c.render(o, doc)
	if err != nil {
		return err
	}
	if err := o.print(text); err != nil {
		return err
	}

	return console.Exit(exitCodeOf(doc.State), nil)
}

// exitCodeOf returns the exit code for the fleet's state.
func exitCodeOf(state string) int {
	switch state {
	case decide.Updating:
		return exitUpdating
	case decide.Stopped:
		return exitStopped
	case decide.Degraded:
		return exitDegraded
	}

	return console.ExitOK
}

// render returns the status in the chosen format.
func (c statusCmd) render(o *operator, doc statusDoc) (string, error) {
	if c.Format != "text" {
		return encodeText(c.Format, doc)
	}

	return statusText{
		doc:   doc,
		steps: len(o.parts.Manifest.Steps()),
		now:   time.Now(),
	}.render(console.CanColour(o.streams.Out))
}

// watch prints the status whenever it changes, until the operator interrupts the command, the reader of the
// output has closed the pipe, or the parent process has ended.
func (c statusCmd) watch(o *operator) error {
	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()
	screen := console.NewScreen(o.streams.Out)

	separator := "---\n"
	// JSON documents need no separator.
	if c.Format == "json" {
		separator = ""
	}

	return o.open(func(k *keyspace.Space) error {
		for ctx.Err() == nil {
			err := c.showOnce(ctx, o, k, screen, separator)
			if console.IsUnread(err) {
				return nil
			}
			// If ctx was cancelled, the loop ends without an error.
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}

		return nil
	})
}

// showOnce shows the status on the screen, and then waits until it may have changed.
func (c statusCmd) showOnce(
	ctx context.Context,
	o *operator,
	k *keyspace.Space,
	screen *console.Screen,
	separator string,
) error {
	doc, err := keyspace.Read(ctx, k, o.readStatus)
	if err != nil {
		return err
	}
	text, err := c.render(o, doc)
	if err != nil {
		return err
	}
	if err := screen.Show(text, separator); err != nil {
		return err
	}

	// Some parts of the status change at a certain time, without a change in the store. The empty prefix stands
	// for all keys.
	return backoff.Until(ctx, doc.changesAt, func(ctx context.Context) error {
		return k.Await(ctx, doc.revision, keyspace.Below(""))
	})
}

// readStatus reads the status document from a view of the store.
func (o *operator) readStatus(v *keyspace.View) (statusDoc, error) {
	s, err := o.loadStatusSnapshot(v)
	if err != nil {
		return statusDoc{}, err
	}

	now := time.Now().UTC()
	doc := statusDoc{
		Cluster:      s.Config.Cluster,
		ConfigFaults: s.Config.Faults,
		Release:      s.Release,
		Replaced:     s.Replaced(),
		Refused:      s.Refusals(),
		NoRoom:       s.NoRoom(now),
		Withdrawn:    s.WithdrawnRelease(),
		CheckFail:    s.CheckFailure,
		Target:       s.Target,
		Pause:        s.Pause,
		Request:      s.Current,
		Servers:      newServerDocs(s, now),
	}

	if s.Current != nil {
		doc.Version = s.Current.Version
	}

	doc.Leader, err = updater.ReadKey[leaderDoc](v, keys.UpdaterLeader)
	if err != nil {
		return doc, err
	}
	if doc.Leader == nil {
		doc.LeaderDue = s.LeaderIsDueBy(now)
	}

	doc.changesAt = nextChange(s, doc.LeaderDue, now)
	doc.revision, err = v.Revision()
	if err != nil {
		return doc, err
	}

	// This needs Leader and LeaderDue.
	doc.judge(s, now)
	return doc, nil
}

// nextChange returns the first time after now at which a leader is due, a pause ends, or the update window
// can open or close. It returns zero if there is no such time.
func nextChange(s decide.Snapshot, leaderDue, now time.Time) time.Time {
	due := []time.Time{leaderDue}
	if p := s.Pause; p != nil && p.Until != nil && p.IsOn(now) {
		due = append(due, *p.Until)
	}
	if w := s.Config.Window; w != nil {
		due = append(due, w.NextEdge(now))
	}

	due = slices.DeleteFunc(due, time.Time.IsZero)
	if len(due) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(due, time.Time.Compare)
}

// judge sets the state, the reason, the hints and, if the fleet is degraded, the findings. It prefers the
// leader's findings, since the leader has observed the servers for long enough. Without a leader, it uses the
// findings at the current time. A leader that is due soon counts as a leader.
func (d *statusDoc) judge(s decide.Snapshot, now time.Time) {
	hasLeader := d.Leader != nil || !d.LeaderDue.IsZero()
	c := s.Condition(now, hasLeader)
	d.State = c.State
	d.Why = c.Why
	if c.Hint != "" {
		d.Hints = []string{c.Hint}
	}

	// The hint of the first trouble is c.Hint.
	for _, t := range c.Troubles[min(1, len(c.Troubles)):] {
		if t.Hint != "" && !slices.Contains(d.Hints, t.Hint) {
			d.Hints = append(d.Hints, t.Hint)
		}
	}

	if c.State != decide.Degraded {
		return
	}

	degraded := s.CurrentFindings(now, hasLeader)
	d.Findings = degraded.Findings
	d.MoreFindings = degraded.More
	if degraded.More > 0 {
		// The leader has recorded only some of the findings.
		d.allFindings = s.Findings(now)
	}
}

// loadStatusSnapshot reads the snapshot with the workers' activities, and sets its OwnVersion to the newest
// version among the running workers. If no worker is running, OwnVersion is this program's version.
func (o *operator) loadStatusSnapshot(v *keyspace.View) (s decide.Snapshot, err error) {
	s, err = decide.Load(v, o.parts.Version)
	if err != nil {
		return s, err
	}
	s.Activities, err = updater.PeekServers[record.Activity](v, keys.Activities)
	if err != nil {
		return s, err
	}

	// This program can have a different version than the servers.
	newest := ""
	for _, p := range s.Present {
		if release.Newer(p.Version, newest) {
			newest = p.Version
		}
	}

	s.OwnVersion = cmp.Or(newest, o.parts.Version)
	return s, nil
}

// newServerDocs returns all servers that are registered, or that take part in the update, in numeric order.
func newServerDocs(s decide.Snapshot, now time.Time) []serverDoc {
	known := map[int]*serverDoc{}
	docOf := func(lrn int) *serverDoc {
		if known[lrn] == nil {
			known[lrn] = &serverDoc{LRN: lrn}
		}
		return known[lrn]
	}

	for _, lrn := range s.Servers {
		docOf(lrn).Registered = true
	}

	if s.Current != nil {
		isRunning := !s.Current.Stop && !s.Current.Ended()
		for _, lrn := range s.Current.Servers {
			d := docOf(lrn)
			d.InUpdate = true
			// A record of an earlier update says nothing about this one.
			if worker, ok := s.Workers[lrn]; ok && worker.IsFor(*s.Current) {
				d.Record = &worker
			}
			if activity, ok := s.Activity(lrn); ok && isRunning {
				d.Doing = &activity
			}
		}
	}

	docs := []serverDoc{}
	for _, lrn := range record.SortServers(slices.Collect(maps.Keys(known))) {
		// Without a live worker, presence is empty.
		presence, alive := s.Present[lrn]
		d := known[lrn]
		d.Alive = alive
		d.Worker = presence.Version
		d.Room = s.Inventories[lrn].Room
		d.addHealth(s, now)
		docs = append(docs, *d)
	}

	return docs
}

// addHealth adds the components that do not work, the host that also claims the server's number, and the time at
// which the server was last seen. A server that is alive is seen now.
func (d *serverDoc) addHealth(s decide.Snapshot, now time.Time) {
	inventory := s.Inventories[d.LRN]
	switch {
	case d.Alive:
		d.Seen = &now
	case !inventory.At.IsZero():
		d.Seen = &inventory.At
	}

	if inventory.KnowsHealth() {
		// Ill must not be nil here, since nil stands for unknown health.
		d.Ill = map[string]string{}
		maps.Copy(d.Ill, inventory.Ill)
	}
	if twin, ok := s.Twins[d.LRN]; ok {
		d.Twin = &twin
	}
}
