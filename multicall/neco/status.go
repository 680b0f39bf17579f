package neco

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// The exit codes of neco status.
const (
	exitUpdating = 3
	exitStopped  = 4
	exitDegraded = 5
)

type statusCmd struct {
	Format string `enum:"text,json,yaml" default:"text" help:"text, json or yaml."`
	Watch  bool   `short:"w" help:"Show it again whenever it changes, until interrupted."`
}

// The states of the whole.
const (
	upToDate = "up to date"
	updating = "updating"
	stopped  = "stopped"
	degraded = "degraded"
)

type statusDoc struct {
	Cluster string `json:"cluster,omitempty"`
	State   string `json:"state"`
	Why     string `json:"why,omitempty"`
	Version string `json:"version,omitempty"` // of the last update
	Release string `json:"release,omitempty"` // the newest acceptable one
	// Replaced, if set, describes how the files of the servers' release have changed since.
	Replaced string `json:"replaced,omitempty"`
	// Refused are releases that servers would take if they could be installed.
	Refused []record.Refusal `json:"refused,omitempty"`
	// NoRoom is the release that servers would take if there were room for it.
	NoRoom *record.NoRoom `json:"no-room,omitempty"`
	// ConfigFaults are configuration keys that cannot be read.
	ConfigFaults []string             `json:"config-faults,omitempty"`
	Leader       *leaderDoc           `json:"leader,omitempty"`
	Target       *record.Target       `json:"target,omitempty"`
	Pause        *record.Pause        `json:"pause,omitempty"`
	CheckFail    *record.CheckFailure `json:"check-failure,omitempty"`
	Request      *record.Request      `json:"request,omitempty"`
	Servers      []serverDoc          `json:"servers"`
	Findings     []record.Finding     `json:"findings,omitempty"`
	// MoreFindings is how many there are beside those: the leader records so many.
	MoreFindings int `json:"more-findings,omitempty"`

	revision int64            // at which it was read
	all      []record.Finding // if there are more than the leader records
}

// leaderDoc is the leader's record, as package state writes it.
type leaderDoc struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

type serverDoc struct {
	LRN        int            `json:"lrn"`
	Registered bool           `json:"registered"`
	Alive      bool           `json:"alive"`
	Worker     string         `json:"worker-version,omitempty"`
	InUpdate   bool           `json:"in-update"`
	Seen       *time.Time     `json:"seen-at,omitempty"` // when it was known to be so last
	Record     *record.Status `json:"status,omitempty"`
	// Room is how much room the server has for files of releases, as its worker has said last.
	Room []record.Room `json:"room,omitempty"`
	// Doing is the server's task, or what it waits for.
	Doing *record.Activity `json:"doing,omitempty"`
}

// Run prints the status, and returns the state as exit code.
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

	return console.Exit(
		map[string]int{updating: exitUpdating, stopped: exitStopped, degraded: exitDegraded}[doc.State],
		nil,
	)
}

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

func (c statusCmd) watch(o *operator) error {
	ctx, stop := console.UntilUnread(o.ctx, o.streams.Out)
	defer stop()
	screen, separator := console.NewScreen(o.streams.Out), "---\n"
	if c.Format == "json" {
		separator = ""
	}

	return o.open(func(k *keyspace.Space) error {
		for ctx.Err() == nil {
			text := ""
			doc, err := keyspace.Read(ctx, k, o.readStatus)
			if err == nil {
				text, err = c.render(o, doc)
			}
			if err == nil {
				err = screen.Show(text, separator)
			}
			if err == nil {
				err = k.Await(ctx, doc.revision, keyspace.Below(""))
			}
			if console.IsUnread(err) {
				return nil
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}

		return nil
	})
}

func (o *operator) readStatus(v *keyspace.View) (statusDoc, error) {
	s, err := o.loadStatusSnapshot(v)
	if err != nil {
		return statusDoc{}, err
	}

	doc := statusDoc{
		Cluster:      s.Config.Cluster,
		ConfigFaults: s.Config.Faults,
		Release:      s.Release,
		Replaced:     s.Replaced(),
		Refused:      s.Refusals(),
		NoRoom:       s.NoRoom(time.Now().UTC()),
		Target:       s.Target,
		Pause:        s.Pause,
		Request:      s.Current,
		Servers:      newServerDocs(s),
	}

	doc.State, doc.Why = overallState(s, time.Now())
	if s.Current != nil {
		doc.Version = s.Current.Version
	}

	if doc.Leader, err = updater.ReadKey[leaderDoc](v, keys.UpdaterLeader); err != nil {
		return doc, err
	}
	if doc.CheckFail, err = updater.ReadKey[record.CheckFailure](v, keys.CheckFailure); err != nil {
		return doc, err
	}
	if doc.revision, err = v.Revision(); err != nil {
		return doc, err
	}

	doc.judgeFleet(s, time.Now().UTC())
	if doc.State == upToDate && len(doc.Refused) > 0 {
		doc.State = degraded
		doc.Why = fmt.Sprintf("release %s is refused: %s", doc.Refused[0].Version, doc.Refused[0].Why)
	}
	if doc.State == upToDate && doc.NoRoom != nil {
		doc.State = degraded
		doc.Why = doc.NoRoom.String()
	}

	return doc, nil
}

// loadStatusSnapshot takes the newest worker's version for the snapshot's own: this program's
// says nothing of the servers as long as a worker is there.
func (o *operator) loadStatusSnapshot(v *keyspace.View) (s decide.Snapshot, err error) {
	if s, err = decide.Load(v, o.parts.Version); err == nil {
		s.Activities, err = updater.PeekServers[record.Activity](v, keys.Activities)
	}
	if err != nil {
		return s, err
	}

	newest := ""
	for _, p := range s.Present {
		if release.Newer(p.Version, newest) {
			newest = p.Version
		}
	}

	s.OwnVersion = cmp.Or(newest, o.parts.Version)
	return s, nil
}

func overallState(s decide.Snapshot, now time.Time) (word, why string) {
	r := s.Current
	s.Degraded = record.NewDegraded(s.Findings(now)) // who is absent only the leader knows: that is no news here
	a := decide.Next(s, now)
	switch {
	case r != nil && r.Stop:
		return stopped, r.Why
	case r != nil && !r.Ended():
		return updating, "update to " + r.Version + " runs"
	case a.Verb == decide.Start:
		return updating, a.Why + " is about to start"
	case r == nil && s.Recovery != nil:
		return stopped, "recovery waits: " + a.Why
	}

	return upToDate, strings.TrimPrefix(a.Why, upToDate+": ")
}

// newServerDocs returns all servers that are registered, or part of the update, in numeric order.
func newServerDocs(s decide.Snapshot) []serverDoc {
	known := map[int]*serverDoc{}
	of := func(lrn int) *serverDoc {
		if known[lrn] == nil {
			known[lrn] = &serverDoc{LRN: lrn}
		}
		return known[lrn]
	}

	for _, lrn := range s.Servers {
		of(lrn).Registered = true
	}

	if s.Current != nil {
		for _, lrn := range s.Current.Servers {
			d := of(lrn)
			d.InUpdate = true
			if w, ok := s.Workers[lrn]; ok && w.IsFor(*s.Current) {
				d.Record = &w
			}
			if a, ok := s.Activity(lrn); ok && !s.Current.Stop && !s.Current.Ended() {
				d.Doing = &a
			}
		}
	}

	all := []serverDoc{}
	for _, lrn := range record.SortServers(slices.Collect(maps.Keys(known))) {
		p, alive := s.Present[lrn]
		d := known[lrn]
		d.Alive, d.Worker = alive, p.Version
		d.Room = s.Inventories[lrn].Room
		all = append(all, *d)
	}

	return all
}

// judgeFleet takes the findings of the leader, which has watched for long enough to know;
// without a leader it judges by the present moment.
func (d *statusDoc) judgeFleet(s decide.Snapshot, now time.Time) {
	alive := 0
	for i, server := range d.Servers {
		inventory := s.Inventories[server.LRN]
		if server.Alive {
			alive++
			d.Servers[i].Seen = &now
		} else if !inventory.At.IsZero() {
			d.Servers[i].Seen = &inventory.At
		}
	}

	d.Findings = s.Degraded.Findings
	d.MoreFindings = s.Degraded.More
	if d.MoreFindings > 0 {
		d.all = s.Findings(now)
	}
	runs := s.Current != nil && !s.Current.Ended()

	switch {
	case len(s.Servers) == 0 || d.Leader != nil && (runs || len(d.Findings) == 0):
		d.Findings = nil
		d.MoreFindings = 0
		return
	case d.State == stopped || runs && alive > 0:
		return
	case d.Leader != nil:
		d.Why = fmt.Sprintf("not all is as the last update left it (%d findings)", s.Degraded.Count())
	default:
		s.Absent = map[int]time.Time{}
		for _, lrn := range s.Servers {
			if _, here := s.Present[lrn]; !here {
				s.Absent[lrn] = time.Time{}
			}
		}

		d.Findings = s.Findings(now)
		d.MoreFindings = 0
		if d.Why = "no neco-updater leads: nothing begins, and no alert is sent"; alive == 0 {
			d.Why = "no neco-updater and no neco-worker is alive"
		}
	}

	d.State = degraded
}
