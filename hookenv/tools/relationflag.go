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
	option string // the option in the form that was used, such as "-r"; empty if there was none
	value  string
	byName bool // -r, --relation or --relation-name was given
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
	f.AddFunc(take(&r.byID), "the same as --relation; give only one of them", "VALUE", "relation-id")
}

func (r *relationFlag) isGivenTwice() bool { return r.byName && r.byID }

// checkRelation returns an error if --relation and --relation-id are both given, if neither an option nor the hook
// names a relation, or if checkExists refuses the option. relation-get, relation-list and relation-set call it before
// they check their arguments, so that its error comes first.
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

// checkExists returns an error if the option's value is malformed, or if no relation can be read for the number in it.
// It accepts a name without a number. resolveRelation later checks names, and whether the call can use the relation.
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

// resolveRelation returns the id of the relation in the options or, without such options, of the hook's
// relation, which can be [hookapi.NoRelation]. side is the unit or service from whose side a relation's name is
// interpreted. The call can also use the relations of that side. An empty side stands for the local unit.
func (r *relationFlag) resolveRelation(ctx context.Context, inv *hookenv.Invocation, side string) (int, error) {
	if r.option == "" {
		return inv.Facts.Relation, nil
	}
	id, err := resolveReference(ctx, inv.Hook, r.value, side)
	return id, r.rewordNotFound(inv, rewordUnknown(err, side))
}

// rewordNotFound replaces an error about a relation that was not found, if an option names the relation. In the modern
// dialect the new error contains the option and its value, and in the classic dialect it is always the same text. It
// returns other errors, and nil, unchanged.
func (r *relationFlag) rewordNotFound(inv *hookenv.Invocation, err error) error {
	switch {
	case r.option == "" || !errors.Is(err, hookapi.ErrRelationNotFound):
		return err
	case !inv.IsModern():
		return hookenv.UsageErrorf("Relation not found")
	}

	reason := errNoRelation
	errors.As(err, &reason) // replaces the default reason if err contains one
	return hookenv.UsageErrorf("invalid value %q for option %s: %v", r.value, r.option, reason)
}

// notFoundError is the error for a reference that matches no relation, with the text of the modern dialect.
type notFoundError string

func (e notFoundError) Error() string { return string(e) }

// Is makes every notFoundError a hookapi.ErrRelationNotFound.
func (e notFoundError) Is(target error) bool { return target == hookapi.ErrRelationNotFound }

const (
	errNoRelation = notFoundError("relation not found")
	errNoID       = notFoundError("invalid relation id")
)

// resolveReference returns the id of the relation that value names, seen from side as in
// [relationFlag.resolveRelation].
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

// resolveNumber returns the id of a relation that is given by its number, possibly with a name. It returns
// errNoRelation if the call cannot use the relation, as seen from side. For a wrong name, the classic dialect
// also returns errNoRelation, and the modern dialect only logs a warning.
func resolveNumber(ctx context.Context, h hookapi.Hook, ref reference, side string) (int, error) {
	relation, err := describeRelation(ctx, h, ref)
	if err != nil {
		return 0, err
	}

	hasName := slices.ContainsFunc(relation.Ends, func(e hookapi.End) bool { return e.Name == ref.name })
	if ref.name != "" && !hasName {
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

// describeRelation returns the relation with the reference's number. It returns errNoRelation for a negative number.
func describeRelation(ctx context.Context, h hookapi.Hook, ref reference) (hookapi.Relation, error) {
	if ref.id < 0 {
		return hookapi.Relation{}, errNoRelation
	}
	return h.Relation(ctx, ref.id)
}

// inReach reports whether the call can use the relation. It can use the hook's own relation, and the relations of the
// local unit's service and of side's service. Without a local unit and without a side, it can use all relations.
func inReach(facts hookapi.Facts, r hookapi.Relation, side string) bool {
	if r.ID == facts.Relation {
		return true
	}
	if facts.Unit == "" && side == "" {
		return true
	}

	_, hasService := findEnd(r, facts.Service)
	_, hasSide := findEnd(r, serviceOf(side))
	return facts.Unit != "" && hasService || hasSide
}

// resolveName returns the id of the relation with this name. It searches the relations of side, and then the
// local unit's relations with side. The ends of a relation may have different names, such as "server" for
// mysql and "db" for wordpress. It returns an error unless exactly one relation matches.
func resolveName(ctx context.Context, h hookapi.Hook, name, side string) (int, error) {
	facts := h.Facts()
	if side == "" {
		side = facts.Unit
	}
	if side == "" {
		return 0, hookenv.UsageErrorf("no unit specified: relation %q is a name, which only a unit can resolve", name)
	}

	// If side does not exist, the local unit can still have the relation.
	found, sideErr := relationsNamed(ctx, h, name, side, side)
	if sideErr != nil && !errors.Is(sideErr, hookapi.ErrUnknownUnit) {
		return 0, sideErr
	}

	if len(found) == 0 && facts.Unit != "" {
		var err error
		if found, err = relationsNamed(ctx, h, name, facts.Unit, side); err != nil {
			return 0, err
		}
	}

	return requireOne(facts.Dialect, name, found, sideErr)
}

// relationsNamed returns the ids of the relations between owner and side that have this name at the end of owner.
func relationsNamed(ctx context.Context, h hookapi.Hook, name, owner, side string) ([]int, error) {
	relations, err := listRelations(ctx, h, owner)
	if err != nil {
		return nil, err
	}

	var found []int
	for _, r := range relations {
		// If the owner's service is not in the relation, end.Name is empty.
		end, _ := findEnd(r, serviceOf(owner))
		_, hasSide := findEnd(r, serviceOf(side))
		if hasSide && end.Name == name {
			found = append(found, r.ID)
		}
	}

	return found, nil
}

// requireOne returns the only id in found. If there are several, it returns a usage error that lists them. If
// there is none, it returns noneErr, or errNoID if noneErr is nil.
func requireOne(dialect hookapi.Dialect, name string, found []int, noneErr error) (int, error) {
	switch len(found) {
	case 0:
		if noneErr != nil {
			return 0, noneErr
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

	return 0, hookenv.UsageErrorf("relation %q is ambiguous: want one of %s", name, strings.Join(ids, ", "))
}

// listRelations returns the relations of a unit or service, sorted by id. For the hook's service and its units,
// it includes the hook's own relation, even if the relation is gone, as in its broken hook.
func listRelations(ctx context.Context, h hookapi.Hook, owner string) ([]hookapi.Relation, error) {
	ids, err := h.RelationIDs(ctx, owner)
	if err != nil {
		return nil, err
	}

	f := h.Facts()
	isOwnService := serviceOf(owner) == f.Service
	if isOwnService && f.Relation != hookapi.NoRelation && !slices.Contains(ids, f.Relation) {
		ids = slices.Sorted(slices.Values(append(ids, f.Relation)))
	}

	var relations []hookapi.Relation
	for _, id := range ids {
		r, err := h.Relation(ctx, id)
		if errors.Is(err, hookapi.ErrRelationNotFound) {
			continue // the relation was removed after RelationIDs
		}
		if err != nil {
			return nil, err
		}
		relations = append(relations, r)
	}

	return relations, nil
}

// findEnd returns the service's end of the relation, or false if the service is not in the relation.
func findEnd(r hookapi.Relation, service string) (hookapi.End, bool) {
	i := slices.IndexFunc(r.Ends, func(e hookapi.End) bool { return e.Service == service })
	if i < 0 {
		return hookapi.End{}, false
	}
	return r.Ends[i], true
}

// formatRelationID returns the relation's id in the form of the dialect. The modern form contains the relation's name at
// the end of the service or, if the service is not in the relation, at the first end.
func formatRelationID(dialect hookapi.Dialect, r hookapi.Relation, service string) string {
	if dialect != hookapi.Modern {
		return classicPrefix + strconv.Itoa(r.ID)
	}

	end, ok := findEnd(r, service)
	if !ok {
		end = r.Ends[0] // there is no local service in juju do without --unit
	}
	return end.Name + ":" + strconv.Itoa(r.ID)
}
