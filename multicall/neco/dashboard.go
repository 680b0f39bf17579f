package neco

import (
	"context"
	"fmt"
	"os"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type dashboardCmd struct{ dashboard.Flags }

// Run serves the page until it is interrupted. The page also shows the current environment, if there is one. If that
// environment cannot be opened, Run prints a warning, and the page leaves it out.
func (c dashboardCmd) Run(o *operator) error {
	f, err := o.openFleet()
	if err != nil {
		return err
	}
	e, err := o.parts.OpenEnvironment(o.ctx, o.streams)
	if err != nil {
		o.note("warning: the page does not show the model: %v", err)
	}

	return dashboard.Serve(o.ctx, dashboard.Options{Streams: o.streams, Flags: c.Flags, Environment: e, Fleet: f})
}

// OpenFleet opens the boot servers of $NECO_STATE for the dashboard. It returns nil if the variable is not set.
func OpenFleet(ctx context.Context, s console.Streams, parts Parts) (*dashboard.Fleet, error) {
	o := &operator{ctx: ctx, streams: s, url: os.Getenv("NECO_STATE"), parts: parts}
	if o.url == "" {
		return nil, nil
	}
	return o.openFleet()
}

// openFleet opens the fleet's store for the dashboard. The store stays open until this process exits.
func (o *operator) openFleet() (*dashboard.Fleet, error) {
	url, err := o.storeURL()
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(o.ctx, openTimeout)
	defer cancel()
	k, err := updater.OpenStore(ctx, url)
	if err != nil {
		return nil, err
	}

	read := func(ctx context.Context) (view dashboard.FleetView, revision int64, err error) {
		err = k.View(ctx, func(v *keyspace.View) (err error) {
			view, revision, err = o.readFleet(v)
			return err
		})
		return view, revision, err
	}

	// The empty prefix stands for all keys.
	await := func(ctx context.Context, revision int64) error { return k.Await(ctx, revision, keyspace.Below("")) }

	// Any read shows that the store answers.
	ask := func(ctx context.Context) error {
		return k.View(ctx, func(v *keyspace.View) error {
			_, err := v.Revision()
			return err
		})
	}

	return &dashboard.Fleet{Read: read, Await: await, Ask: ask}, nil
}

// stateColour returns the colour of a fleet's state.
func stateColour(state string) console.Colour {
	switch state {
	case decide.Stopped, decide.Degraded:
		return console.Red
	case decide.Updating:
		return console.Yellow
	}

	return console.Green
}

// maxShownEntries is how many updates, and how many changes by operators, the page shows.
const maxShownEntries = 20

// readFleet reads the boot servers' part of the dashboard: the state with its hints, the facts, and the tables of
// servers, updates, changes and steps. It returns the revision of the store that it has read.
func (o *operator) readFleet(v *keyspace.View) (view dashboard.FleetView, revision int64, err error) {
	doc, err := o.readStatus(v)
	if err != nil {
		return view, 0, err
	}
	// This equals the snapshot from which readStatus has made doc, since both read the same view.
	s, err := o.loadStatusSnapshot(v)
	if err != nil {
		return view, 0, err
	}

	history, err := listNewest[record.History](v, keys.AllHistory, maxShownEntries)
	if err != nil {
		return view, 0, err
	}
	audits, err := listNewest[record.Audit](v, keys.Audits, maxShownEntries)
	if err != nil {
		return view, 0, err
	}

	view.State = doc.State
	view.Colour = stateColour(doc.State)
	view.Why = doc.Why
	view.Hints = doc.Hints
	view.ChangesAt = doc.changesAt

	now := time.Now()
	text := statusText{doc: doc, steps: len(o.parts.Manifest.Steps()), now: now}
	view.Facts = fleetFacts(text, s)
	for _, step := range o.parts.Manifest.Steps() {
		view.Steps = append(view.Steps, step.Name)
	}
	// The page needs only the table.
	plan, _ := planTable(o.parts.Manifest)
	view.Tables = []dashboard.FleetTable{
		{Title: "Servers", Table: text.serverTable()},
		{Title: "Updates", Table: historyTable(history, now)},
		{Title: "Changes by operators", Table: auditTable(audits)},
		{Title: "Plan", Table: plan},
	}

	return view, doc.revision, nil
}

// fleetFacts returns the names and texts of the facts of the status, except its state and hints, and adds the facts
// that only the dashboard shows.
func fleetFacts(text statusText, s decide.Snapshot) (facts [][2]string) {
	addFact := func(name, format string, args ...any) {
		// The page shows the state and the hints ("also") at the top.
		if name == "state" || name == "also" {
			return
		}
		facts = append(facts, [2]string{name, fmt.Sprintf(format, args...)})
	}

	text.writeFacts(addFact)
	if r := text.doc.Request; r != nil && !r.Ended() {
		addFact("gate", "open to step %d %s", s.Gate.OpenStep(*r), s.Gate.StepName)
	}
	if w := s.Config.Window; w == nil || w.IsOpen(text.now) {
		addFact("window", "updates may start now")
	} else {
		addFact("window", "updates may start after %s", w.NextOpening(text.now).Format(time.RFC3339))
	}

	return facts
}
