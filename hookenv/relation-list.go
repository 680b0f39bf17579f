package hookenv

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
)

// What relation-list lists, by --type.
const (
	typeUnit         = "unit"
	typeService      = "service"
	typeRelationID   = "relation-id"
	typeRelationName = "relation-name"
)

func relationList() Tool {
	return Tool{
		Name:    "relation-list",
		Summary: "list the members of a relation, or relations",
		Usage: "[-r VALUE] [--app] [--format FORMAT] [--type relation-id|relation-name|service|unit]\n" +
			"       [--interface I] [--role provides|consumes|peers|all] [--scope global|container|all] [UNIT_NAME]",
		Notes: "Without options it lists who is at the other end of the relation that the hook is about, as\n" +
			"UNIT_NAME sees it (by default the local unit; a service stands for all its units). Filters select\n" +
			"among all relations of UNIT_NAME. In the classic dialect yaml, and json with one\n" +
			"of --type, --interface, --role and --scope, print the full adjacency.",
		Examples: []string{
			"relation-list",
			"relation-list -r website",
			"relation-list --type=relation-id --interface=mysql",
			"relation-list --relation-id=$JUJU_RELATION_ID --role=consumes --type=service",
		},
		prepare: func(f *flagSet) runner {
			l := &relationLister{}
			l.which.declare(f)
			f.bool(&l.app, "list the service instead of its units", "app")
			f.word(&l.kind, "what to list; unit is the default", "type", typeRelationID, typeRelationName, typeService, typeUnit)
			f.string(&l.iface, "only relations of this interface", "I", "interface")
			f.word(&l.role, "only ends of this role; requires means consumes", "role", "provides", "consumes", "requires", "peers", "all")
			f.word(&l.scope, "only relations of this scope", "scope", "global", "container", "all")
			l.output.declare(f)
			return l.run
		},
	}
}

// word adds an option whose value is one of a few words.
func (f *flagSet) word(to *string, help, name string, words ...string) {
	f.add(option{names: []string{name}, arg: strings.Join(words, "|"), help: help, set: func(name, value string) error {
		if !slices.Contains(words, value) {
			return usagef("invalid value %q for option %s: expected one of %s", value, name, strings.Join(words, ", "))
		}
		*to = value
		return nil
	}})
}

type relationLister struct {
	which
	output
	app                      bool
	kind, iface, role, scope string
	filtered                 bool // a filter was given
	selected                 bool // a filter or a type was given
}

func (l *relationLister) run(ctx context.Context, inv *invocation) error {
	viewer, err := l.arguments(ctx, inv)
	if err != nil {
		return err
	}
	relations, err := l.relations(ctx, inv, viewer)
	if err != nil {
		return err
	}
	relations = slices.DeleteFunc(relations, func(r hookapi.Relation) bool { return !l.matches(r) })
	switch {
	case l.app && l.single() && len(relations) == 1:
		return l.print(inv, strings.Join(l.view(viewer).services(relations), "\n"))
	case l.adjacent(inv):
		return l.print(inv, adjacency(l.view(viewer).ownRole(relations)))
	}
	return l.print(inv, l.items(inv, relations, viewer))
}

// arguments checks the words and returns the UNIT_NAME: a unit, a service, or
// the local unit, which is empty under juju do without --unit.
func (l *relationLister) arguments(ctx context.Context, inv *invocation) (viewer string, err error) {
	l.role = strings.TrimPrefix(strings.Replace(l.role, "requires", "consumes", 1), "all")
	l.scope = strings.TrimPrefix(l.scope, "all")
	l.filtered = l.iface != "" || l.role != "" || l.scope != ""
	l.selected = l.filtered || l.kind != ""
	l.kind = cmp.Or(l.kind, typeUnit)
	if l.app {
		l.kind = typeService
	}
	if l.single() && !l.adjacent(inv) || l.names == 3 {
		if err := l.given(ctx, inv); err != nil {
			return "", err
		}
	}
	return l.viewer(ctx, inv)
}

// viewer is the UNIT_NAME. To modern charms, whose relation-list has none, what
// names neither a unit nor a service that exists is an argument too many.
func (l *relationLister) viewer(ctx context.Context, inv *invocation) (string, error) {
	if len(inv.args) == 0 {
		return inv.facts.Unit, nil
	}
	name := inv.name(inv.args[0])
	err := known(ctx, inv.hook, name)
	if Refused(err) && inv.modern() && !isUnit(name) {
		return "", inv.noMore(0)
	}
	if len(inv.args) > 1 {
		err = inv.noMore(1)
	}
	return name, err
}

// known checks that a name is that of a unit or service that exists.
func known(ctx context.Context, h hookapi.Hook, name string) error {
	if !isUnit(name) && !isService(name) {
		return usagef("invalid unit name %q", name)
	}
	_, err := h.RelationIDs(ctx, name)
	return worded(err, name)
}

// single says whether the call is about one relation, named or implied; else
// it is about all of UNIT_NAME's.
func (l *relationLister) single() bool {
	return l.option != "" || !l.filtered && (l.kind == typeUnit || l.kind == typeService)
}

// adjacent says whether the answer is the full adjacency. Charms of the time of Python
// Juju parse plain JSON as a list.
func (l *relationLister) adjacent(inv *invocation) bool {
	return !inv.modern() && !l.app && (l.format == formatYAML || l.format == formatJSON && l.selected)
}

// relations are those that the filters look at.
func (l *relationLister) relations(ctx context.Context, inv *invocation, viewer string) ([]hookapi.Relation, error) {
	if l.option == "" && (!l.single() || l.adjacent(inv)) {
		if viewer == "" {
			return nil, inv.named()
		}
		return relationsOf(ctx, inv.hook, viewer)
	}
	side := viewer
	if len(inv.args) == 0 {
		side = ""
	}
	id, err := l.resolve(ctx, inv, side)
	if err != nil {
		return nil, err
	}
	r, err := inv.hook.Relation(ctx, id)
	if _, has := endOf(r, serviceOf(viewer)); err == nil && viewer != "" && !has {
		err = hookapi.ErrRelationNotFound
	}
	return []hookapi.Relation{r}, l.lost(inv, err)
}

func (l *relationLister) matches(r hookapi.Relation) bool {
	return (l.iface == "" || r.Interface == l.iface) && (l.scope == "" || r.Scope == l.scope)
}

func (l *relationLister) view(viewer string) view {
	return view{viewer: viewer, role: hookapi.Role(l.role)}
}

// items are the results of --type, each once.
func (l *relationLister) items(inv *invocation, relations []hookapi.Relation, viewer string) []string {
	v := l.view(viewer)
	switch l.kind {
	case typeService:
		return v.services(relations)
	case typeRelationID:
		items := []string{}
		for _, r := range v.ownRole(relations) {
			items = append(items, idFor(inv.facts.Dialect, r, serviceOf(viewer)))
		}
		return items
	case typeRelationName:
		return v.relationNames(relations)
	}
	return v.units(relations)
}
