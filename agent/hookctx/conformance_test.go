package hookctx_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"bijou/agent/hookctx"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/kit/statetest"
)

func TestConformance(t *testing.T) { hookapitest.Run(t, open) }

// world implements the suite's environment with a real state. It translates relation ids, since the suite
// chooses its own ids and the store numbers relations in order.
type world struct {
	t       testing.TB
	st      *state.State
	stored  map[int]int // maps the suite's ids to the store's
	leaders *state.Session
	leads   map[string]*state.Leadership // by service
}

// open builds the suite's fixture: it deploys services whose charms have only the endpoints that the fixture
// needs.
func open(t testing.TB, fixture hookapitest.World) hookapitest.Env {
	w := &world{t: t, st: statetest.New(t), stored: map[int]int{}, leads: map[string]*state.Leadership{}}
	w.leaders = statetest.Session(t, w.st)
	ends := map[string][]string{}
	for _, r := range fixture.Relations {
		for _, e := range r.Ends {
			word := strings.Replace(string(e.Role), "consumes", "requires", 1)
			ends[e.Service] = append(ends[e.Service], fmt.Sprintf("%s %s %s", word, e.Name, r.Interface))
		}
	}
	for _, service := range slices.Sorted(maps.Keys(ends)) {
		files := statetest.Meta(service, metadata(ends[service]))
		files["config.yaml"] = "options:\n  title: {type: string, default: My Title}\n  port: {type: int, default: 8080}\n" +
			"  ratio: {type: float, default: 0.5}\n  monsters: {type: boolean, default: false}\n  empty: {type: string}\n"
		statetest.AddService(t, w.st, files, 12)
	}
	statetest.Update(t, w.st, func(tx *state.Tx) error {
		return tx.SetAddresses("0", state.Addresses{Private: fixture.PrivateAddress, Public: fixture.PublicAddress})
	})
	for _, r := range fixture.Relations {
		w.add(r)
	}
	return w
}

// metadata writes the relations of a charm as YAML.
func metadata(ends []string) string {
	var text string
	for _, role := range []string{"provides", "requires", "peers"} {
		section := ""
		for _, e := range ends {
			if words := strings.Fields(e); words[0] == role {
				section += fmt.Sprintf("  %s: %s\n", words[1], words[2])
			}
		}
		if section != "" {
			text += role + ":\n" + section
		}
	}
	return text
}

// add adds one relation of the fixture, with its members and settings.
func (w *world) add(r hookapitest.Relation) {
	if len(r.Ends) == 1 {
		w.stored[r.ID] = w.peer(r.Ends[0].Service)
	} else {
		a, b := r.Ends[0], r.Ends[1]
		w.stored[r.ID] = statetest.Relate(w.t, w.st, a.Service+":"+a.Name, b.Service+":"+b.Name).ID
	}
	for unit, settings := range r.Settings {
		w.Join(r.ID, unit, settings)
		if !slices.ContainsFunc(r.Ends, func(e hookapi.End) bool { return slices.Contains(e.Units, unit) }) {
			w.Leave(r.ID, unit)
		}
	}
	for service, settings := range r.Apps {
		changes := map[string]*string{}
		for k, v := range settings {
			changes[k] = &v
		}
		w.Change(hookapi.Node{Relation: r.ID, Service: service}, changes)
	}
}

func (w *world) peer(service string) int {
	relations := statetest.Read(w.t, w.st, func(v *state.View) ([]state.Relation, error) { return v.ServiceRelations(service) })
	i := slices.IndexFunc(relations, state.Relation.IsPeer)
	return relations[i].ID
}

func (w *world) Start(f hookapi.Facts) hookapitest.Running {
	if f.Relation != hookapi.NoRelation {
		f.Relation = w.stored[f.Relation]
	}
	c := hookctx.New(hookctx.Options{State: w.st, Update: w.st.Update, Facts: f, Log: func(string, string) {}})
	return &running{c, w}
}

func (w *world) Change(n hookapi.Node, changes map[string]*string) {
	statetest.Update(w.t, w.st, func(tx *state.Tx) (err error) {
		if n.Service != "" {
			_, err = tx.MergeAppSettings(w.stored[n.Relation], n.Service, changes)
		} else {
			_, err = tx.MergeSettings(w.stored[n.Relation], n.Unit, changes)
		}
		return err
	})
}

func (w *world) Leave(relation int, unit string) {
	statetest.Update(w.t, w.st, func(tx *state.Tx) error { return tx.LeaveRelation(w.stored[relation], unit) })
}

func (w *world) Join(relation int, unit string, settings map[string]string) {
	statetest.Enter(w.t, w.st, w.stored[relation], unit, settings)
}

func (w *world) RemoveRelation(relation int) {
	id := w.stored[relation]
	members := statetest.Read(w.t, w.st, func(v *state.View) ([]state.Member, error) { return v.Members(id) })
	statetest.Update(w.t, w.st, func(tx *state.Tx) error { return tx.DestroyRelation(id) })
	for _, m := range members {
		w.Leave(relation, m.Unit)
	}
}

func (w *world) Version(n hookapi.Node) int64 {
	return statetest.Read(w.t, w.st, func(v *state.View) (int64, error) {
		if n.Service != "" {
			s, err := v.AppSettings(w.stored[n.Relation], n.Service)
			return s.Version, err
		}
		s, err := v.Settings(w.stored[n.Relation], n.Unit)
		return s.Version, err
	})
}

func (w *world) Lead(service, unit string) {
	var err error
	switch l := w.leads[service]; {
	case l == nil && unit == "":
	case l == nil:
		w.leads[service], err = state.CampaignFor(w.t.Context(), w.leaders, service, unit)
	case unit == "":
		err = l.Resign(w.t.Context())
		delete(w.leads, service)
	default:
		err = state.SetLeaderUnit(w.t.Context(), l, unit)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// running is a hook that translates relation ids.
type running struct {
	*hookctx.Context
	w *world
}

func (r *running) Facts() hookapi.Facts {
	f := r.Context.Facts()
	f.Relation = r.shown(f.Relation)
	return f
}

// shown returns the suite's id of a relation.
func (r *running) shown(stored int) int {
	for id, s := range r.w.stored {
		if s == stored {
			return id
		}
	}
	return stored
}

// id returns the store's id of a relation.
func (r *running) id(shown int) int {
	if id, ok := r.w.stored[shown]; ok {
		return id
	}
	return shown
}

func (r *running) Relation(ctx context.Context, id int) (hookapi.Relation, error) {
	got, err := r.Context.Relation(ctx, r.id(id))
	got.ID = r.shown(got.ID)
	return got, err
}

func (r *running) RelationIDs(ctx context.Context, unit string) ([]int, error) {
	got, err := r.Context.RelationIDs(ctx, unit)
	if !slices.IsSorted(got) {
		r.w.t.Errorf("relation ids of %q are not ascending: %v", unit, got)
	}
	for i := range got {
		got[i] = r.shown(got[i])
	}
	slices.Sort(got)
	return got, err
}

func (r *running) Settings(ctx context.Context, n hookapi.Node) (map[string]string, error) {
	n.Relation = r.id(n.Relation)
	return r.Context.Settings(ctx, n)
}

func (r *running) SetSettings(ctx context.Context, n hookapi.Node, changes map[string]*string) error {
	n.Relation = r.id(n.Relation)
	return r.Context.SetSettings(ctx, n, changes)
}

func (r *running) Network(ctx context.Context, binding string, relation int) (hookapi.Network, error) {
	return r.Context.Network(ctx, binding, r.id(relation))
}

func (r *running) Commit(ctx context.Context) error {
	return r.w.st.Update(ctx, func(tx *state.Tx) error {
		_, err := r.Context.AddTo(ctx, tx)
		return err
	})
}

func (r *running) Abort() { r.Context.Close() }
