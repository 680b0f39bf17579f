package recorded

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/hookapitest"
)

// World returns the fixture in the form of an environment that Open can open.
func (f File) World() hookapitest.World {
	w := hookapitest.World{
		Unit:           f.Fixture.Unit,
		PrivateAddress: f.Fixture.PrivateAddress,
		PublicAddress:  f.Fixture.PublicAddress,
		Config:         f.Fixture.config(),
		Leader:         f.Fixture.Leader,
	}
	for _, r := range f.Fixture.Relations {
		w.Relations = append(w.Relations, r.world(serviceOf(f.Fixture.Unit)))
	}
	return w
}

// config returns the configuration. It converts whole numbers to integers, since JSON has only one kind of
// number.
func (f Fixture) config() map[string]any {
	config := maps.Clone(f.Config)
	for key, value := range config {
		if n, ok := value.(float64); ok && n == float64(int64(n)) {
			config[key] = int64(n)
		}
	}
	return config
}

func (r Relation) world(local string) hookapitest.Relation {
	own := cmp.Or(r.Own, local)
	near := hookapi.End{Service: own, Name: r.Name, Role: cmp.Or(r.Role, hookapi.Consumes), Units: r.members(own)}
	ends := []hookapi.End{near}
	if r.Service == own {
		ends[0].Role = hookapi.Peers
	} else {
		far := hookapi.End{Service: r.Service, Name: cmp.Or(r.RemoteName, r.Service), Role: hookapi.Provides, Units: r.members(r.Service)}
		if near.Role == hookapi.Provides {
			far.Role = hookapi.Consumes
			ends = []hookapi.End{near, far}
		} else {
			ends = []hookapi.End{far, near}
		}
	}
	return hookapitest.Relation{
		Relation: hookapi.Relation{ID: r.ID, Interface: cmp.Or(r.Interface, r.Service), Scope: cmp.Or(r.Scope, "global"), Ends: ends},
		Settings: r.Units,
		Apps:     r.App,
	}
}

// members returns a service's units without departed ones.
func (r Relation) members(service string) []string {
	var members []string
	for _, unit := range slices.Sorted(maps.Keys(r.Units)) {
		if serviceOf(unit) == service && !slices.Contains(r.Departed, unit) {
			members = append(members, unit)
		}
	}
	return members
}

// Facts returns the facts of a case's hook.
func (f File) Facts(name string) hookapi.Facts {
	c := f.context(name)
	service := serviceOf(f.Fixture.Unit)
	facts := hookapi.Facts{
		Unit: f.Fixture.Unit, Service: service, Charm: cmp.Or(f.Fixture.Charm, service), Hook: c.Hook,
		Dialect: cmp.Or(f.Fixture.Dialect, hookapi.Modern), Relation: hookapi.NoRelation,
	}
	if c.NoUnit {
		facts.Unit, facts.Service, facts.Charm, facts.Operator = "", "", "", true
	}
	if c.Relation == nil {
		return facts
	}
	i := slices.IndexFunc(f.Fixture.Relations, func(r Relation) bool { return r.ID == *c.Relation })
	r := f.Fixture.Relations[i]
	facts.Relation, facts.RemoteService, facts.RemoteUnit, facts.Broken = r.ID, r.Service, c.RemoteUnit, c.Broken
	if !c.Broken {
		facts.Members = slices.DeleteFunc(r.members(r.Service), func(u string) bool { return u == facts.Unit })
	}
	return facts
}

// context returns a context of the file by name, or one of the two predefined ones: the first
// relation's -changed hook, and a hook without a relation.
func (f File) context(name string) Context {
	if c, ok := f.Contexts[name]; ok {
		return c
	}
	if name == "relation" {
		r := f.Fixture.Relations[0]
		return Context{Hook: r.Name + "-relation-changed", Relation: &r.ID, RemoteUnit: r.members(r.Service)[0]}
	}
	return Context{Hook: "config-changed"}
}

func serviceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}
