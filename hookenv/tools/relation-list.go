package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// The values of relation-list's option --type, which select the items to list.
const (
	typeUnit         = "unit"
	typeService      = "service"
	typeRelationID   = "relation-id"
	typeRelationName = "relation-name"
)

// prepareRelationList declares the options of relation-list, which prints units, services or relations.
func prepareRelationList(f *hookenv.FlagSet) hookenv.Runner {
	l := &relationLister{}
	l.relationFlag.addFlags(f)
	f.AddBool(&l.app, "list the application instead of its units", "app")

	f.AddChoice(&l.listed, "what to list; unit is the default", "type", typeRelationID, typeRelationName,
		typeService, typeUnit)
	f.AddString(&l.iface, "only relations of this interface", "I", "interface")
	f.AddChoice(&l.role, "only ends of this role; requires is the same as consumes", "role", "provides", "consumes",
		"requires", "peers", "all")
	f.AddChoice(&l.scope, "only relations of this scope", "scope", "global", "container", "all")
	f.AddFormat()
	return l.run
}

// relationLister is one call of relation-list or unit-relations.
type relationLister struct {
	relationFlag
	app                        bool
	listed, iface, role, scope string
	filtered                   bool // a filter was given
	selected                   bool // a filter or a type was given
}

// run prints the items that the options select. By default these are units.
func (l *relationLister) run(ctx context.Context, inv *hookenv.Invocation) error {
	viewer, err := l.parseArguments(ctx, inv)
	if err != nil {
		return err
	}
	relations, err := l.readRelations(ctx, inv, viewer)
	if err != nil {
		return err
	}

	relations = slices.DeleteFunc(relations, func(r hookapi.Relation) bool { return !l.matches(r) })
	switch {
	// The remote application of one relation is printed as a text, and not as a list.
	case l.app && l.isSingle() && len(relations) == 1:
		return inv.Print(strings.Join(l.newView(viewer).listServices(relations), "\n"))
	// The output is a dictionary with both ends of each relation.
	case l.wantsAdjacency(inv):
		return inv.Print(buildAdjacency(l.newView(viewer).filterByRole(relations)))
	}

	return inv.Print(l.listItems(inv, relations, viewer))
}

// parseArguments normalizes the options, and checks the relation if the call needs one. It returns the
// viewer, the unit or service whose view of the relations is listed. The default is the hook's unit, which is
// empty under juju do without --unit.
func (l *relationLister) parseArguments(ctx context.Context, inv *hookenv.Invocation) (viewer string, err error) {
	switch l.role {
	case "requires":
		l.role = "consumes"
	case "all":
		l.role = ""
	}
	if l.scope == "all" {
		l.scope = ""
	}

	l.filtered = l.iface != "" || l.role != "" || l.scope != ""
	l.selected = l.filtered || l.listed != ""
	l.listed = cmp.Or(l.listed, typeUnit)
	if l.app {
		l.listed = typeService
	}

	// Two options for the relation are an error even if the call needs no relation.
	if l.needsRelation(inv) || l.isGivenTwice() {
		if err := l.checkRelation(ctx, inv); err != nil {
			return "", err
		}
	}

	return l.viewerArgument(ctx, inv)
}

// viewerArgument returns the unit or service in the first argument or, without arguments, the hook's unit. It returns
// an error if the unit or service does not exist, or if there are more arguments. For an argument that is neither
// a unit's name nor an existing service, modern charms get the error for an extra argument, since Juju's relation-list
// takes no arguments.
func (l *relationLister) viewerArgument(ctx context.Context, inv *hookenv.Invocation) (string, error) {
	if len(inv.Args) == 0 {
		return inv.Facts.Unit, nil
	}

	name := inv.TrimName(inv.Args[0])
	err := checkKnown(ctx, inv.Hook, name)
	if IsCallerError(err) && inv.IsModern() && !isUnit(name) {
		return "", inv.LimitArgs(0)
	}

	if len(inv.Args) > 1 {
		return name, inv.LimitArgs(1) // this error is reported even if the name is unknown
	}
	return name, err
}

// checkKnown returns a usage error if the name is malformed, or an [unknownNameError] if no such unit or service exists.
func checkKnown(ctx context.Context, h hookapi.Hook, name string) error {
	if !isUnit(name) && !isService(name) {
		return hookenv.UsageErrorf("invalid unit name %q", name)
	}
	_, err := h.RelationIDs(ctx, name) // only to find out whether the name exists
	return rewordUnknown(err, name)
}

// isSingle reports whether the call is about one relation: the one that it names or, if it lists units or services
// without a filter, the hook's own. It ignores wantsAdjacency, for which a call that names no relation lists all
// relations of the viewer.
func (l *relationLister) isSingle() bool {
	if l.option != "" {
		return true
	}
	listsMembers := l.listed == typeUnit || l.listed == typeService
	return listsMembers && !l.filtered
}

// needsRelation reports whether the call must have a relation: the one that it names, or else the hook's own.
func (l *relationLister) needsRelation(inv *hookenv.Invocation) bool {
	return l.isSingle() && !l.wantsAdjacency(inv)
}

// wantsAdjacency reports whether the output is a dictionary with both ends of each relation, as in classic charms.
// With JSON, the output is such a dictionary only if a filter or --type is given. Without these options, classic
// charms expect a list.
func (l *relationLister) wantsAdjacency(inv *hookenv.Invocation) bool {
	if inv.IsModern() || l.app {
		return false
	}
	return inv.Format == hookenv.FormatYAML || inv.Format == hookenv.FormatJSON && l.selected
}

// readRelations returns the relations to list: the relation of option -r or of the hook if the call needs one, or else
// all relations of the viewer. It returns an error if the viewer's service is not in the one relation.
func (l *relationLister) readRelations(
	ctx context.Context,
	inv *hookenv.Invocation,
	viewer string,
) ([]hookapi.Relation, error) {
	if l.option == "" && !l.needsRelation(inv) {
		if viewer == "" {
			return nil, inv.RequireUnitArgument() // always an error here
		}
		return listRelations(ctx, inv.Hook, viewer)
	}

	// Without an argument, a relation's name is interpreted from the side of the local unit.
	side := viewer
	if len(inv.Args) == 0 {
		side = ""
	}
	id, err := l.resolveRelation(ctx, inv, side)
	if err != nil {
		return nil, err
	}

	r, err := inv.Hook.Relation(ctx, id)
	if err != nil {
		return nil, l.rewordNotFound(inv, err)
	}
	_, hasViewer := findEnd(r, serviceOf(viewer))
	if viewer != "" && !hasViewer {
		return nil, l.rewordNotFound(inv, hookapi.ErrRelationNotFound)
	}

	return []hookapi.Relation{r}, nil
}

// matches reports whether the relation has the interface and the scope of the options.
func (l *relationLister) matches(r hookapi.Relation) bool {
	return (l.iface == "" || r.Interface == l.iface) && (l.scope == "" || r.Scope == l.scope)
}

// newView returns the viewer's view of relations, with the role of the options.
func (l *relationLister) newView(viewer string) relationView {
	return relationView{viewer: viewer, role: hookapi.Role(l.role)}
}

// listItems returns the items that --type selects: ids or names of the relations, or the services or units in them.
func (l *relationLister) listItems(inv *hookenv.Invocation, relations []hookapi.Relation, viewer string) []string {
	v := l.newView(viewer)
	switch l.listed {
	case typeService:
		return v.listServices(relations)
	case typeRelationID:
		items := []string{}
		for _, r := range v.filterByRole(relations) {
			items = append(items, formatRelationID(inv.Facts.Dialect, r, serviceOf(viewer)))
		}
		return items
	case typeRelationName:
		return v.listRelationNames(relations)
	}

	return v.listUnits(relations)
}
