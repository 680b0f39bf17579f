package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// Environment is the environment that the page shows.
type Environment struct {
	Name, Version string // Version is bijou's version
	Store         string // the kind of the store
	State         *state.State
	// Explain returns the reason for a unit's status.
	Explain func(u status.Unit) string
	// Owed returns the next step of a unit's agent, or "" if there is none.
	Owed func(v *state.View, unit string) (string, error)
}

// templateFunctions returns the functions that the page's templates call.
func templateFunctions() template.FuncMap {
	return template.FuncMap{
		"text":  func(s string) string { return text.Escape(text.HideSecrets(s)) },
		"short": shorten,
		"time":  func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock": func(t time.Time) string { return t.Local().Format("15:04:05.000") },
		"took":  func(from, to time.Time) string { return to.Sub(from).Round(time.Millisecond).String() },
		"any":   func(t time.Time) bool { return !t.IsZero() },
		"lower": strings.ToLower,

		"isUnit": charm.IsUnit,
		"steps":  splitSteps,
		"isTime": isTime,
	}
}

// shorten returns a text of at most n characters unchanged. It cuts a longer text to at most n characters, with an
// ellipsis at the end. It cuts after the last word that fits, if that keeps more than half of the part that fits.
func shorten(n int, s string) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}

	// Leave one character for the ellipsis.
	beginning := string(runes[:n-1])
	// A word also ends at a space directly after the part that fits.
	if end := strings.LastIndexFunc(string(runes[:n]), unicode.IsSpace); end > len(beginning)/2 {
		beginning = beginning[:end]
	}
	return strings.TrimRightFunc(beginning, unicode.IsSpace) + "…"
}

// liveEnvironment has the rows of an environment.
type liveEnvironment struct {
	*server
	status status.Status
	rows   rows                 // all rows except hooks in the timeline
	runs   rows                 // hooks in the timeline
	first  map[string]time.Time // when the first hook of each unit in the timeline began
	last   map[string]time.Time // when each unit's last hook ended
	feed   *state.Feed
	stop   context.CancelFunc // stops the goroutine that fills the feed; nil if no goroutine fills it
}

// newLiveEnvironment returns an environment that reads everything at its first read.
func newLiveEnvironment(s *server) *liveEnvironment {
	e := &liveEnvironment{
		server: s,
		runs:   rows{},
		first:  map[string]time.Time{},
		last:   map[string]time.Time{},
		feed:   state.NewFeed(),
	}
	e.feed.Invalidate()
	return e
}

// close stops the goroutine that fills the feed, if there is one.
func (e *liveEnvironment) close() {
	if e.stop != nil {
		e.stop()
		e.stop = nil
	}
}

func (e *liveEnvironment) ask(ctx context.Context) error { return e.askEnvironment(ctx) }

// askEnvironment returns once the environment's store has answered.
func (s *server) askEnvironment(ctx context.Context) error {
	return s.Environment.State.View(ctx, func(v *state.View) error {
		_, err := v.Revision()
		return err
	})
}

// await blocks until the feed has a change, or ctx is done, which the caller notices itself. It always returns nil.
func (e *liveEnvironment) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-e.feed.Ready():
	}
	return nil
}

// read returns all rows of the environment. It reads the whole environment at the first call, after an error, and
// if the changes are too many or concern more than units. Otherwise it reads only the units that have changed.
func (e *liveEnvironment) read(ctx context.Context) (rows, error) {
	changes := e.feed.Take()
	if changes.Err != nil {
		// The watch has ended with an error. This read or, if it fails, a later read starts the next watch.
		e.close()
	}

	changed, err := e.readChanges(ctx, changes.All, changes.Changes)
	if err != nil {
		// The feed no longer has these changes, so the next call must read everything.
		e.feed.Invalidate()
		return nil, err
	}

	// There is no watch before the first read, and after a watch has ended.
	if e.stop == nil {
		if err := e.watch(ctx, changed.revision); err != nil {
			// The next call must read everything, since no watch collects the changes until then.
			e.feed.Invalidate()
			return nil, err
		}
	}

	units := changed.units
	if changed.all {
		// Begin without rows, since some can belong to entities that are gone.
		e.rows = rows{}
		for _, s := range e.status.Services {
			units = slices.AppendSeq(units, maps.Keys(s.Units))
		}
	}

	e.putUnits(units)
	e.putOthers()

	shown := maps.Clone(e.rows)
	// e.runs can have hooks of units that are gone. The page does not show them, since these units have no lane.
	maps.Copy(shown, e.runs)
	return shown, nil
}

// readResult says what a read has changed in the status.
type readResult struct {
	units    []string // the units that have changed, unless all is true
	all      bool     // everything must be drawn again
	revision int64    // the revision that was read
}

// readChanges updates the status and the hooks, at one revision. If all is true, or if the changes concern more
// than units, it reads the whole environment. Otherwise it reads only the units that the changes concern.
func (e *liveEnvironment) readChanges(
	ctx context.Context,
	all bool,
	changes []state.KeyChange,
) (r readResult, err error) {
	options := status.Options{Now: time.Now()}
	r.all = all
	err = e.Environment.State.View(ctx, func(v *state.View) (err error) {
		if r.all {
			err = e.readAll(v, options)
		} else {
			r.units, r.all, err = e.refresh(v, options, changes)
		}
		if err != nil {
			return err
		}

		r.revision, err = v.Revision()
		return err
	})
	return r, err
}

// watch starts a goroutine that fills the feed with the changes after the revision, until the watch fails, ctx is
// done or close is called.
func (e *liveEnvironment) watch(ctx context.Context, revision int64) error {
	ctx, stop := context.WithCancel(ctx)
	watcher, err := e.Environment.State.Watch(ctx, revision, state.WatchAll(), state.WatchHistories())
	if err != nil {
		stop()
		return err
	}

	e.stop = stop
	go func() {
		defer watcher.Close()
		e.feed.End(e.feed.Collect(ctx, watcher))
	}()

	return nil
}

// readAll reads the status of the whole environment, and the hooks of the last hour.
func (e *liveEnvironment) readAll(v *state.View, options status.Options) (err error) {
	e.status, err = status.Read(v, options)
	if err != nil {
		return err
	}

	recent, last, err := v.RecentHookRuns(time.Now().Add(-time.Hour))
	if err != nil {
		return err
	}

	e.last = last // also of hooks that ended more than an hour ago
	for unit, runs := range recent {
		e.putRuns(unit, runs)
	}

	return nil
}

// refresh updates the status after the changes, and returns the units that must be drawn again. Of each unit that
// has ended a hook, it also puts the recorded hooks into the timeline. all is true if everything must be drawn
// again.
func (e *liveEnvironment) refresh(
	v *state.View,
	options status.Options,
	changes []state.KeyChange,
) (units []string, all bool, err error) {
	units, all, err = e.status.Refresh(v, options, changes)
	if err != nil {
		return nil, false, err
	}

	for _, c := range changes {
		unit, ok := state.HistoryOf(c.Key)
		if !ok {
			continue
		}

		runs, err := v.HookRuns(unit)
		if err != nil {
			return nil, false, err
		}

		e.putRuns(unit, runs)
		// Draw the unit again, since its first hook gives it a lane.
		units = append(units, unit)
	}

	return units, all, nil
}

// runView is a hook in the timeline.
type runView struct {
	ID, Unit, Name string
	Run            *state.HookRun // nil while the hook runs
	From, Took     float64        // in seconds; From counts from the beginning of the timeline
}

// shortestDrawn is the minimum width of a hook, in seconds. A browser does not draw a rectangle without
// width, so nobody could click it. The rectangle's stroke makes it wide enough for a finger.
const shortestDrawn = 0.01

// putRuns puts a unit's hooks that have ended into the timeline, and updates the times of the unit's first and
// last hook. The timeline keeps at most state.MaxHookRuns such hooks of one unit.
func (e *liveEnvironment) putRuns(unit string, runs []state.HookRun) {
	for _, r := range runs {
		if first, ok := e.first[unit]; !ok || r.Started.Before(first) {
			e.first[unit] = r.Started
		}
		if r.Ended.After(e.last[unit]) {
			e.last[unit] = r.Ended
		}

		v := runView{
			// A newer hook with the same id replaces the oldest one.
			ID:   fmt.Sprintf("run/%s/%d", unit, r.Seq%state.MaxHookRuns),
			Unit: unit,
			Name: r.Hook,
			Run:  &r,
			From: r.Started.Sub(e.began).Seconds(),
			Took: max(r.Ended.Sub(r.Started).Seconds(), shortestDrawn),
		}
		e.runs.put("runs/"+unit, v.ID, "", e.render("run", v))
	}
}

// unitView is a unit in its table.
type unitView struct {
	Name, Word, Message string
	status.Unit
}

// putUnits updates the rows of the named units in their table and the timeline, with their running hooks. It
// removes the rows of units that are gone.
func (e *liveEnvironment) putUnits(names []string) {
	for _, name := range names {
		// The names are keys of the store, so they are valid.
		service, number, _ := charm.ParseUnit(name)
		runningID := "run/" + name + "/now"
		for _, id := range []string{"env/unit/" + name, "env/lane/" + name, runningID} {
			delete(e.rows, id)
		}
		u, ok := e.status.Services[service].Units[name]
		if !ok {
			continue
		}

		view := unitView{Name: name, Word: u.Word(), Message: e.Environment.Explain(u), Unit: u}
		order := fmt.Sprintf("%s/%09d", service, number)
		e.rows.put("units", "env/unit/"+name, order, e.render("unit", view))

		_, hasRun := e.first[name]
		if hasRun || u.Running != nil {
			e.rows.put("lanes", "env/lane/"+name, order, e.render("lane", view))
		}

		if running := u.Running; running != nil {
			e.rows.put("runs/"+name, runningID, "", e.render("run", runView{
				ID:   runningID,
				Unit: name,
				Name: running.Name,
				From: running.Since.Sub(e.began).Seconds(),
				Took: 1e7, // beyond the current time
			}))
		}
	}
}

// serviceView is a service in the diagram.
type serviceView struct {
	Name string
	status.Service
	Counts  map[string]int // the number of units, by status
	Running int            // the number of units that run a hook
	Chips   []*serviceView // its subordinates
}

// newServiceViews returns a view of each service, and the counts of all services together. The views include services
// that only a relation names, since their records are missing or do not decode. Their boxes show only the name.
func (e *liveEnvironment) newServiceViews() (views map[string]*serviceView, total serviceView) {
	views = map[string]*serviceView{}
	total = serviceView{Counts: map[string]int{}}
	names := slices.Sorted(maps.Keys(e.status.Services))

	for _, name := range names {
		v := &serviceView{Name: name, Service: e.status.Services[name], Counts: map[string]int{}}
		for _, u := range v.Units {
			word := u.Word()
			v.Counts[word]++
			total.Counts[word]++
			if u.Running != nil {
				v.Running++
				total.Running++
			}
		}
		views[name] = v
	}
	for _, r := range e.status.Relations {
		for name := range r.Services {
			if views[name] == nil {
				views[name] = &serviceView{Name: name, Counts: map[string]int{}}
			}
		}
	}

	// A subordinate is a chip in the box of each principal. Each principal has a view, since a relation of its
	// subordinate names it.
	for _, name := range names {
		for _, principal := range views[name].Principal {
			views[principal].Chips = append(views[principal].Chips, views[name])
		}
	}

	return views, total
}

// putDiagram updates the boxes of services, and the relations between them. A subordinate has no box of its own.
func (e *liveEnvironment) putDiagram(views map[string]*serviceView) {
	g := graph{}
	for _, name := range slices.Sorted(maps.Keys(views)) {
		if len(views[name].Principal) == 0 {
			g.boxes = append(g.boxes, name)
		}
	}

	for id, r := range e.status.Relations {
		provider, consumer := r.Ends()
		if views[provider] == nil || views[consumer] == nil {
			continue // the damaged record of the relation does not name two ends
		}
		// For a subordinate, box returns its principal.
		g.lines = append(g.lines, [2]string{views[consumer].box(), views[provider].box()})

		list := "relations"
		if r.State() == state.RelationError {
			// The page draws this list above the boxes, so that no box hides the relation.
			list = "failing"
		}
		e.rows.put(list, "env/relation/"+id, id, e.render("relation", map[string]any{
			"ID":       id,
			"Relation": r,
			"Provider": provider,
			"Consumer": consumer,
		}))
	}

	for i, boxes := range g.arrange() {
		// A rank is a row of the page, and also the list that contains its boxes.
		rank := fmt.Sprintf("env/rank/%03d", i)
		e.rows.put("services", rank, rank, e.render("rank", rank))
		for place, name := range boxes {
			e.rows.put(rank, "env/service/"+name, fmt.Sprintf("%03d", place), e.render("service", views[name]))
		}
	}
}

// putOthers updates the diagram, and all other rows that do not belong to one unit.
func (e *liveEnvironment) putOthers() {
	views, total := e.newServiceViews()
	e.putDiagram(views)
	for id, m := range e.status.Machines {
		// Machines are sorted by number, since leading zeros make the order of texts numeric.
		e.rows.put("machines", "env/machine/"+id, fmt.Sprintf("%09s", id),
			e.render("machine", map[string]any{"ID": id, "Machine": m}))
	}

	e.rows.put("summary", "env/summary", "", e.render("summary", total))
	e.putTimeline()
	e.putAttention()
	if p := e.status.Provisioner; p != nil {
		e.rows.put("notes", "env/provisioner", "", e.render("provisioner", p))
	}
	if damage := e.status.Damage; len(damage) > 0 {
		e.rows.put("notes", "env/damage", "", e.render("damage", damage))
	}
}

// putTimeline updates the start of the timeline, which is when its first hook began, and the number of units
// without a lane. A unit has no lane if the timeline has no hook of it.
func (e *liveEnvironment) putTimeline() {
	var first time.Time // zero if the timeline has no hook
	quiet := 0          // the number of units without a lane
	for _, s := range e.status.Services {
		for name, u := range s.Units {
			began, hasRun := e.first[name]
			isRunningFirst := u.Running != nil && (!hasRun || u.Running.Since.Before(began))
			if isRunningFirst {
				began = u.Running.Since
			}
			if !hasRun && !isRunningFirst {
				quiet++
				continue
			}

			if first.IsZero() || began.Before(first) {
				first = began
			}
		}
	}

	e.rows.put("timeline", "env/timeline", "", e.render("timeline", map[string]any{
		"First": first.Sub(e.began).Seconds(),
		"Any":   !first.IsZero(),
		"Quiet": quiet,
	}))
}

// box returns the service whose box contains this service: the service itself, or the first principal of a
// subordinate.
func (v *serviceView) box() string {
	if len(v.Principal) > 0 {
		return v.Principal[0]
	}
	return v.Name
}
