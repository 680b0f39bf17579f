package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/logs"
	"bijou/state/status"
	"bijou/state/text"
)

// detail explains a unit, a service, a relation, or a hook that has run.
type detail struct {
	Title, Unit string // Unit is empty if the detail does not describe a unit
	Word, Why   string // the unit's status, and the reason for it
	Since       time.Time
	InError     bool // a hook or the agent has failed, so the end of the last hook does not matter
	Shown       *status.UnitDetail
	Run         *state.HookRun  // nil if the detail does not describe a hook
	Lines       []logs.Line     // the log lines of Run
	Runs        []state.HookRun // the unit's last hooks, the newest first
	Relations   []entry         // the unit's relations, with the settings of both sides
	Facts       []entry
}

// detailTimeout limits how long a click waits for the store.
const detailTimeout = 5 * time.Second

// errBadRequest is returned for a name that no unit can have.
var errBadRequest = errors.New("bad request")

// entry is a value with its name. A value in a list has no name.
type entry struct {
	Name, Text string
	Below      []entry // the members of a dictionary or list
}

// serveDetail answers with the details of the unit, hook run, service or relation that the request names.
func (s *server) serveDetail(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), detailTimeout)
	defer cancel()

	d, err := state.Read(ctx, s.Environment.State, func(v *state.View) (detail, error) {
		unit := r.FormValue("unit")
		run := r.FormValue("run") // the number of a hook run of the unit
		needsUnit := unit != "" || run != ""
		switch {
		case needsUnit && !charm.IsUnit(unit):
			return detail{}, fmt.Errorf("%q is not a unit's name: %w", unit, errBadRequest)
		case run != "":
			return readRun(v, unit, run)
		case unit != "":
			return s.readUnit(v, unit)
		}

		return readServiceOrRelation(v, r.FormValue("service"), r.FormValue("relation"))
	})
	switch {
	case errors.Is(err, errBadRequest):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, state.ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil && ctx.Err() != nil:
		http.Error(w, "the store has not answered for "+detailTimeout.String()+": try again later",
			http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "cannot read the store: "+err.Error(), http.StatusServiceUnavailable)
	default:
		s.write(w, "detail", d)
	}
}

// readRun reads a run of a unit's hook, with the hook's output. seq is the number of the run. It returns ErrNotFound if
// the store no longer has that run.
func readRun(v *state.View, unit, seq string) (detail, error) {
	runs, err := v.HookRuns(unit)
	if err != nil {
		return detail{}, err
	}
	i := slices.IndexFunc(runs, func(r state.HookRun) bool { return strconv.FormatInt(r.Seq, 10) == seq })
	if i < 0 {
		return detail{}, fmt.Errorf("hook %s is not among the last hooks of unit %q: %w", seq, unit, state.ErrNotFound)
	}

	d := detail{Title: runs[i].Hook, Unit: unit, Run: &runs[i]}
	// A line of the log names its hook, but not the number of the run. The time tells runs of one hook apart.
	isOfRun := func(l logs.Line) bool { return l.Hook == d.Run.Hook && !l.Time.After(d.Run.Ended) }
	d.Lines, err = logs.Read(v, logs.Filter{Sources: []string{unit}, Since: d.Run.Started, Matches: isOfRun})
	return d, err
}

// readUnit reads a unit with its relations, and its last runs of hooks, the newest first.
func (s *server) readUnit(v *state.View, name string) (detail, error) {
	shown, err := status.ReadUnit(v, name, status.Options{Now: time.Now()}, s.Environment.Owed)
	if err != nil {
		return detail{}, err
	}
	runs, err := v.HookRuns(name)
	if err != nil {
		return detail{}, err
	}
	slices.Reverse(runs)
	// Settings of relations may contain secrets.
	shown.HideSettings()

	// ReadUnit does not return the unit of the status, from which the list of units gets its words.
	listed, err := status.Read(v, status.Options{Now: time.Now(), Globs: []string{name}})
	if err != nil {
		return detail{}, err
	}

	service, _, _ := charm.ParseUnit(name)
	u := listed.Services[service].Units[name]
	d := detail{
		Title:   name,
		Unit:    name,
		Word:    u.Word(),
		Why:     s.why(u),
		Since:   u.Since(),
		InError: u.Word() == "error",
		Shown:   &shown,
		Runs:    runs,
	}

	// The page shows hooks and relations apart from the facts. It takes them from d.Runs and d.Relations, not from
	// d.Shown.
	for _, r := range shown.Relations {
		title := fmt.Sprintf("%s, with %s", r.Endpoint, r.Service)
		d.Relations = append(d.Relations, entry{Name: title, Below: newEntries(r)})
	}
	shown.Hooks = nil
	shown.Relations = nil
	d.Facts = newEntries(shown)
	return d, nil
}

// readServiceOrRelation reads a service or, if service is empty, a relation with the settings in it. It returns
// ErrNotFound if there is no such service or relation.
func readServiceOrRelation(v *state.View, service, relation string) (detail, error) {
	if service != "" {
		matching, err := status.Read(v, status.Options{Globs: []string{service}})
		if err != nil {
			return detail{}, err
		}
		s, ok := matching.Services[service]
		if !ok {
			return detail{}, fmt.Errorf("application %q: %w", service, state.ErrNotFound)
		}

		return detail{Title: service, Facts: newEntries(s)}, nil
	}

	everything, err := status.Read(v, status.Options{})
	if err != nil {
		return detail{}, err
	}
	r, ok := everything.Relations[relation]
	if !ok {
		what := cmp.Or(relation, "relation") // the request may name nothing at all
		return detail{}, fmt.Errorf("%s: %w", what, state.ErrNotFound)
	}

	data, err := readRelationData(v, relation, r)
	if err != nil {
		return detail{}, err
	}

	return detail{
		Title: relation,
		Facts: append(newEntries(r), entry{Name: "data", Below: newEntries(data)}),
	}, nil
}

// readRelationData returns the settings in a relation. The keys are the names of services, for their own settings,
// and of units. A unit that has not entered the relation yet has no settings. Settings that do not decode count as
// empty, and the view reports them when it ends.
func readRelationData(v *state.View, relation string, r status.Relation) (map[string]map[string]string, error) {
	// relation is a key of the status, so it ends with a number.
	id, _ := strconv.Atoi(strings.TrimPrefix(relation, "relation-"))

	data := map[string]map[string]string{}
	for name, end := range r.Services {
		app, err := v.AppSettings(id, name)
		// Skips is true for settings that do not decode.
		if err != nil && !v.Skips(err) {
			return nil, err
		}
		data[name] = app.Values

		for unit := range end.Units {
			settings, err := v.Settings(id, unit)
			if state.IgnoreNotFound(err) != nil && !v.Skips(err) {
				return nil, err
			}
			data[unit] = settings.Values
		}
	}

	return data, nil
}

// newEntries returns the members of a value's YAML as entries, with secrets hidden as in logs.
func newEntries(value any) []entry {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		panic(fmt.Sprintf("internal error: %v", err))
	}
	return newEntry("", &n).Below
}

// newEntry returns the entry of a YAML node, with its members below it. n.Content has the members of a list or,
// for a dictionary, each key followed by its value.
func newEntry(name string, n *yaml.Node) entry {
	// HideSecrets finds a secret by the name before it, as in password=x. So add the name for the call.
	e := entry{Name: name, Text: strings.TrimPrefix(text.HideSecrets(name+"="+n.Value), name+"=")}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			e.Below = append(e.Below, newEntry("", c))
		case i%2 == 1:
			e.Below = append(e.Below, newEntry(n.Content[i-1].Value, c))
		}
	}

	return e
}
