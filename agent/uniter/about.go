package uniter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
)

// about is all that a hook is told of before it starts.
type about struct {
	hook      state.Hook
	unit      state.Unit
	env       state.Environment
	charm     string // its name
	version   string // of Juju, as the service promises it
	dialect   charm.Dialect
	members   []string
	departing string
	asked     *state.Action   // nil in hooks
	debug     *hookexec.Debug // nil unless an operator runs it by hand
	holder    string          // who that is
}

// about gathers it.
func (u *uniter) about(ctx context.Context, h state.Hook, snap Snapshot) (a about, err error) {
	a = about{hook: h, unit: snap.Unit, members: members(snap, h)}
	if h.Kind == hook.Departed {
		a.departing = h.RemoteUnit
		if snap.Unit.Life != state.Alive {
			a.departing = snap.Unit.Name
		}
	}
	if hook.IsAsked(h) {
		a.asked = snap.Asked
	}
	err = u.State.View(ctx, func(v *state.View) error {
		c, err := v.Charm(snap.Unit.Charm)
		if err != nil {
			return err
		}
		s, err := v.Service(snap.Unit.Service)
		if err != nil {
			return err
		}
		a.charm, a.dialect, a.version = c.Meta.Name, s.DialectOf(c), cmp.Or(s.JujuVersion, hookexec.JujuVersion)
		if a.env, err = v.Environment(); err != nil || a.asked != nil {
			return err
		}
		a.debug, a.holder, err = debugged(v, u.Unit, h)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("cannot prepare hook %q: %w", h.Name, err)
	}
	return a, nil
}

// members are those of the hook's relation after the change that it is about:
// the joiner in, the departing unit out, nobody in broken.
func members(snap Snapshot, h state.Hook) []string {
	var names []string
	for name, m := range snap.Uniter.Members[h.Relation] {
		joiner := name == h.RemoteUnit && h.Kind == hook.Joined
		leaver := name == h.RemoteUnit && h.Kind == hook.Departed
		if hook.IsUnit(name) && (joiner || m.State == hook.In && !leaver) {
			names = append(names, name)
		}
	}
	charm.SortUnits(names)
	return names
}

// context makes the hook's view of the world.
func (u *uniter) context(a about) *hookctx.Context {
	h := a.hook
	return hookctx.New(hookctx.Options{
		State:        u.State,
		Update:       u.announced,
		RelationName: h.RelationName,
		CharmURL:     a.unit.Charm,
		Log:          func(level, message string) { u.output.Write(level, h.Name, message) },
		Facts: hookapi.Facts{
			Unit:          a.unit.Name,
			Service:       a.unit.Service,
			Charm:         a.charm,
			Model:         a.env.UUID,
			Hook:          h.Name,
			Dialect:       hookapi.Dialect(a.dialect),
			Relation:      h.Relation,
			RemoteUnit:    h.RemoteUnit,
			RemoteService: h.RemoteService,
			Broken:        h.Kind == hook.Broken,
			Departing:     a.departing,
			Members:       a.members,
		},
		Action:    askedFacts(a.asked),
		Resources: u.Folder.path("resources"),
	})
}

// environment is what the hook's variables are made of.
func (a about) environment(u *uniter, client string) hookexec.Facts {
	h := a.hook
	f := hookexec.Facts{
		Unit:        a.unit.Name,
		Service:     a.unit.Service,
		Charm:       a.charm,
		Hook:        h.Name,
		Machine:     a.unit.Machine,
		Principal:   a.unit.Principal,
		UnitDir:     string(u.Folder),
		CharmDir:    u.Folder.Charm(),
		Tools:       u.Folder.tools(),
		Socket:      u.server.Path(),
		ClientID:    client,
		Environment: a.env.Name,
		UUID:        a.env.UUID,
		Version:     a.version,
	}
	if a.asked != nil {
		f.Asked = &hookexec.AskedFacts{Action: a.asked.Name, ID: strconv.Itoa(a.asked.ID)}
	}
	if h.Relation != state.NoRelation {
		f.Relation = &hookexec.RelationFacts{
			Name:          h.RelationName,
			ID:            relationID(h, a.dialect),
			RemoteUnit:    h.RemoteUnit,
			RemoteService: h.RemoteService,
			Members:       a.members,
			Departing:     a.departing,
		}
	}
	return f
}

// relationID is the relation's id in the charm's dialect.
func relationID(h state.Hook, d charm.Dialect) string {
	if d == charm.Modern {
		return fmt.Sprintf("%s:%d", h.RelationName, h.Relation)
	}
	return fmt.Sprintf("relation-%d", h.Relation)
}

// attrs are what the agent's log says of the hook.
func (a about) attrs() []any {
	attrs := []any{"hook", a.hook.Name}
	if a.hook.Relation != state.NoRelation {
		attrs = append(attrs, "relation", a.hook.Relation, "members", len(a.members))
	}
	return attrs
}
