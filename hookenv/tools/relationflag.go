package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// relationFlag holds the options by which every relation tool names its relation.
type relationFlag struct {
	option string // as it was typed, "-r"; empty if none was
	value  string
	byName bool // -r or its like was given
	byID   bool // --relation-id was given
}

// addFlags declares the options that name a relation.
func (r *relationFlag) addFlags(f *hookenv.FlagSet) {
	take := func(isGiven *bool) func(name, value string) error {
		return func(name, value string) error {
			r.option = name
			r.value = value
			*isGiven = true
			return nil
		}
	}

	f.AddFunc(take(&r.byName), "the relation: its name (db), its id (relation-42, db:42) or its number (42)",
		"VALUE", "r", "relation", "relation-name")
	f.AddFunc(take(&r.byID), "the same; not both", "VALUE", "relation-id")
}

func (r *relationFlag) isGivenTwice() bool { return r.byName && r.byID }

// checkRelation refuses calls that name two relations, none, or a malformed id. The tools call it
// before they look at their arguments, so that its error comes first.
func (r *relationFlag) checkRelation(ctx context.Context, inv *hookenv.Invocation) error {
	switch {
	case r.isGivenTwice():
		return hookenv.UsageErrorf("cannot use --relation together with --relation-id")
	case r.option != "":
		return r.checkExists(ctx, inv)
	case inv.Facts.Relation == hookapi.NoRelation:
		return hookenv.UsageErrorf("no relation id specified")
	}

	return nil
}

// checkExists returns an error if the option holds an id that no relation has. It accepts all names:
// resolveRelation checks them, and whether the caller may use the relation.
func (r *relationFlag) checkExists(ctx context.Context, inv *hookenv.Invocation) error {
	ref, ok := parseReference(r.value)
	switch {
	case !ok:
		return r.rewordNotFound(inv, errNoID)
	case !ref.hasNumber:
		return nil
	}

	_, err := describeRelation(ctx, inv.Hook, ref)
	return r.rewordNotFound(inv, err)
}

// resolveRelation returns the id of the relation that the flags name, or else of the hook's relation. The
// relation's name is that at the end of side, a unit or service, or of the local unit if side is empty.
func (r *relationFlag) resolveRelation(ctx context.Context, inv *hookenv.Invocation, side string) (int, error) {
	if r.option == "" {
		return inv.Facts.Relation, nil
	}
	id, err := resolveReference(ctx, inv.Hook, r.value, side)
	return id, r.rewordNotFound(inv, rewordUnknown(err, side))
}

// rewordNotFound names the option in the error about a relation that does not exist.
func (r *relationFlag) rewordNotFound(inv *hookenv.Invocation, err error) error {
	switch {
	case r.option == "" || !errors.Is(err, hookapi.ErrRelationNotFound):
		return err
	case !inv.IsModern():
		return hookenv.UsageErrorf("Relation not found")
	}

	why := errNoRelation
	errors.As(err, &why)
	return hookenv.UsageErrorf("invalid value %q for option %s: %v", r.value, r.option, why)
}

// notFoundError says in the modern dialect's words why a VALUE stands for no relation.
type notFoundError string

func (e notFoundError) Error() string { return string(e) }

// Is makes every notFoundError a hookapi.ErrRelationNotFound.
func (e notFoundError) Is(target error) bool { return target == hookapi.ErrRelationNotFound }

const (
	errNoRelation = notFoundError("relation not found")
	errNoID       = notFoundError("invalid relation id")
)

// resolveReference returns the id of the relation that value names. Its name is that at the end of side, a
// unit or service, or of the local unit if side is empty.
func resolveReference(ctx context.Context, h hookapi.Hook, value, side string) (int, error) {
	ref, ok := parseReference(value)
	if !ok {
		return 0, errNoID
	}
	if ref.hasNumber {
		return resolveNumber(ctx, h, ref, side)
	}

	return resolveName(ctx, h, ref.name, side)
}

// resolveNumber returns the id of a relation given by number, perhaps with a name before it. The relation
// must be one of the local unit, or one that side is in. The classic dialect refuses a wrong name; the
// modern one only warns of it.
func resolveNumber(ctx context.Context, h hookapi.Hook, ref reference, side string) (int, error) {
	relation, err := describeRelation(ctx, h, ref)
	if err != nil {
		return 0, err
	}

	if ref.name != "" && !slices.ContainsFunc(relation.Ends, func(e hookapi.End) bool { return e.Name == ref.name }) {
		if h.Facts().Dialect != hookapi.Modern {
			return 0, errNoRelation
		}
		h.Log("WARNING", fmt.Sprintf("relation %d is not called %q", ref.id, ref.name))
	}

	if !inReach(h.Facts(), relation, side) {
		return 0, errNoRelation
	}

	return ref.id, nil
}

func describeRelation(ctx context.Context, h hookapi.Hook, ref reference) (hookapi.Relation, error) {
	if ref.id < 0 {
		return hookapi.Relation{}, errNoRelation
	}
	return h.Relation(ctx, ref.id)
}

func inReach(facts hookapi.Facts, r hookapi.Relation, side string) bool {
	if r.ID == facts.Relation || facts.Unit == "" && side == "" {
		return true
	}
	_, own := findEnd(r, facts.Service)
	_, others := findEnd(r, serviceOf(side))
	return own && facts.Unit != "" || others
}

// resolveName returns the id of the relation with that name. It looks among side's relations, then among
// the local unit's relations that side shares: mysql calls "server" what wordpress calls "db".
func resolveName(ctx context.Context, h hookapi.Hook, name, side string) (int, error) {
	facts := h.Facts()
	if side == "" {
		side = facts.Unit
	}
	if side == "" {
		return 0, hookenv.UsageErrorf("no unit specified: relation %q is a name, and names are a unit's", name)
	}

	found, unknown := relationsNamed(ctx, h, name, side, side)
	if unknown != nil && !errors.Is(unknown, hookapi.ErrUnknownUnit) {
		return 0, unknown
	}

	if len(found) == 0 && facts.Unit != "" {
		var err error
		if found, err = relationsNamed(ctx, h, name, facts.Unit, side); err != nil {
			return 0, err
		}
	}

	return requireOne(facts.Dialect, name, found, unknown)
}

// relationsNamed returns the ids of the relations with the name that the owner shares with the service of
// side.
func relationsNamed(ctx context.Context, h hookapi.Hook, name, owner, side string) ([]int, error) {
	relations, err := listRelations(ctx, h, owner)
	if err != nil {
		return nil, err
	}

	var found []int
	for _, r := range relations {
		end, _ := findEnd(r, serviceOf(owner))
		if _, shared := findEnd(r, serviceOf(side)); shared && end.Name == name {
			found = append(found, r.ID)
		}
	}

	return found, nil
}

// requireOne returns the only id in found. Several are a usage error that lists them. If there is none it
// returns unknown, the error of looking up the first unit's names, if that is not nil.
func requireOne(dialect hookapi.Dialect, name string, found []int, unknown error) (int, error) {
	switch len(found) {
	case 0:
		if unknown != nil {
			return 0, unknown
		}
		return 0, errNoID
	case 1:
		return found[0], nil
	}

	prefix := classicPrefix
	if dialect == hookapi.Modern {
		prefix = name + ":"
	}
	var ids []string
	for _, id := range found {
		ids = append(ids, prefix+strconv.Itoa(id))
	}

	return 0, hookenv.UsageErrorf("relation %q is ambiguous: it may be %s", name, strings.Join(ids, ", "))
}

// listRelations returns the relations of a unit or service by ascending id. A relation that breaks
// is still one of them in its own last hook.
func listRelations(ctx context.Context, h hookapi.Hook, owner string) ([]hookapi.Relation, error) {
	ids, err := h.RelationIDs(ctx, owner)
	if err != nil {
		return nil, err
	}

	f := h.Facts()
	if f.Relation != hookapi.NoRelation && serviceOf(owner) == f.Service &&
		!slices.Contains(ids, f.Relation) {
		ids = slices.Sorted(slices.Values(append(ids, f.Relation)))
	}

	var relations []hookapi.Relation
	for _, id := range ids {
		r, err := h.Relation(ctx, id)
		if errors.Is(err, hookapi.ErrRelationNotFound) {
			continue // it vanished between the two questions
		}
		if err != nil {
			return nil, err
		}
		relations = append(relations, r)
	}

	return relations, nil
}

func findEnd(r hookapi.Relation, service string) (hookapi.End, bool) {
	i := slices.IndexFunc(r.Ends, func(e hookapi.End) bool { return e.Service == service })
	if i < 0 {
		return hookapi.End{}, false
	}
	return r.Ends[i], true
}

// formatRelationID returns the relation's id as the dialect writes it. A modern id depends on the service
// that sees the relation.
func formatRelationID(dialect hookapi.Dialect, r hookapi.Relation, service string) string {
	if dialect != hookapi.Modern {
		return classicPrefix + strconv.Itoa(r.ID)
	}

	end, ok := findEnd(r, service)
	if !ok {
		end = r.Ends[0] // seen from nobody: juju do without a unit
	}
	return end.Name + ":" + strconv.Itoa(r.ID)
}
