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
	Title, Unit string // Unit is whose it is; empty: no unit's
	Shown       *status.UnitDetail
	Run         *state.HookRun  // nil: it is about something else
	Lines       []logs.Line     // what Run has written
	Runs        []state.HookRun // the unit's last ones, the newest first
	Relations   []entry         // of the unit, with what both sides have said
	Facts       []entry
}

// detailTimeout bounds how long a click waits for the store.
const detailTimeout = 5 * time.Second

// errBadRequest refuses a name that nothing can have.
var errBadRequest = errors.New("bad request")

// entry is a value under its name, or without one a value of a list.
type entry struct {
	Name, Text string
	Below      []entry
}

// serveDetail answers with the details of a unit, a hook run, a service or a relation, as the request names
// it.
func (s *server) serveDetail(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), detailTimeout)
	defer cancel()

	d, err := state.Read(ctx, s.Environment.State, func(v *state.View) (detail, error) {
		unit := r.FormValue("unit")
		run := r.FormValue("run")
		switch {
		case (unit != "" || run != "") && !charm.IsUnit(unit):
			return detail{}, fmt.Errorf("%q is not a unit's name: %w", unit, errBadRequest)
		case run != "":
			return readRun(v, unit, run)
		case unit != "":
			return s.readUnit(v, unit)
		}

		return readOfStatus(v, r.FormValue("service"), r.FormValue("relation"))
	})
	switch {
	case errors.Is(err, errBadRequest):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, state.ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil && ctx.Err() != nil:
		http.Error(w, "the store has not answered for "+detailTimeout.String()+": nothing can be read just now",
			http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "cannot read the store just now: "+err.Error(), http.StatusServiceUnavailable)
	default:
		s.write(w, "detail", d)
	}
}

// readRun reads a run of a hook, with the hook's output.
func readRun(v *state.View, unit, seq string) (detail, error) {
	runs, err := v.HookRuns(unit)
	i := slices.IndexFunc(runs, func(r state.HookRun) bool { return strconv.FormatInt(r.Seq, 10) == seq })
	if err != nil || i < 0 {
		return detail{}, cmp.Or(err,
			fmt.Errorf("hook %s is not among the last ones of unit %q: %w", seq, unit, state.ErrNotFound))
	}

	d := detail{Title: runs[i].Hook, Unit: unit, Run: &runs[i]}
	d.Lines, err = logs.Read(v, logs.Filter{Sources: []string{unit}, Since: d.Run.Started, Matches: func(l logs.Line) bool {
		return l.Hook == d.Run.Hook && !l.Time.After(d.Run.Ended)
	}})
	return d, err
}

func (s *server) readUnit(v *state.View, name string) (detail, error) {
	u, err := status.ReadUnit(v, name, status.Options{Now: time.Now()}, s.Environment.Owed)
	if err != nil {
		return detail{}, err
	}
	runs, err := v.HookRuns(name)
	if err != nil {
		return detail{}, err
	}

	slices.Reverse(runs)
	u.HideSettings()

	d := detail{Title: name, Unit: name, Shown: &u, Runs: runs}
	for _, r := range u.Relations {
		d.Relations = append(d.Relations, entry{
			Name:  fmt.Sprintf("%s, with %s", r.Endpoint, r.Service),
			Below: newEntries(r),
		})
	}

	u.Hooks = nil     // they stand in a table
	u.Relations = nil // they stand above the rest
	d.Facts = newEntries(u)
	return d, nil
}

// readOfStatus reads a service, or a relation with the settings of its members.
func readOfStatus(v *state.View, service, relation string) (detail, error) {
	var globs []string // none: everything
	if service != "" {
		globs = []string{service}
	}
	all, err := status.Read(v, status.Options{Globs: globs})
	if s, ok := all.Services[service]; ok || err != nil {
		return detail{Title: service, Facts: newEntries(s)}, err
	}

	r, ok := all.Relations[relation]
	if !ok || service != "" {
		return detail{}, fmt.Errorf("there is no application %q, and no %s: %w", service, relation, state.ErrNotFound)
	}

	said := map[string]map[string]string{}
	id, _ := strconv.Atoi(strings.TrimPrefix(relation, "relation-"))
	for name, end := range r.Services {
		app, aerr := v.AppSettings(id, name)
		err = errors.Join(err, aerr)
		said[name] = app.Values
		for unit := range end.Units {
			own, uerr := v.Settings(id, unit)
			err = errors.Join(err, state.IgnoreNotFound(uerr))
			said[unit] = own.Values
		}
	}

	return detail{
		Title: relation,
		Facts: append(newEntries(r), entry{Name: "data", Below: newEntries(said)}),
	}, err
}

// newEntries returns the lines of a value's YAML, with secrets hidden as in logs.
func newEntries(value any) []entry {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		panic(fmt.Sprintf("internal error: %v", err))
	}
	return newEntry("", &n).Below
}

func newEntry(name string, n *yaml.Node) entry {
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
