package state

import (
	"maps"
	"slices"
	"time"

	"bijou/state/charm"
)

// UnitError is an error of a unit, or of one of its relations, that no operator has answered:
// hooks wait there.
type UnitError struct {
	Unit     string
	Relation int    // its id; NoRelation for the unit's own error
	Name     string // of the relation in the unit's charm
	Failure
}

// UnitErrors lists the errors of those units, by unit and relation. Units that do not exist
// have none. RetryAt is zero where nothing is retried by itself.
func (v *View) UnitErrors(names []string) (all []UnitError, err error) {
	env, err := v.Environment()
	if err != nil {
		return nil, err
	}
	wanted, services := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		service, _, err := charm.ParseUnit(name)
		if err != nil {
			return nil, err
		}
		wanted[name], services[service] = true, true
	}
	for _, service := range slices.Sorted(maps.Keys(services)) {
		units, err := v.Units(service)
		if err != nil {
			return nil, err
		}
		kvs, err := v.list(uniterPrefix(service))
		if err != nil {
			return nil, err
		}
		w := &statusInput{ops: map[string]Op{}, workflows: map[string]Workflow{}, relationStates: map[string]map[int]RelationState{}}
		if err := w.decodeUniters(kvs); err != nil {
			return nil, err
		}
		for _, u := range units {
			if wanted[u.Name] {
				all = append(all, w.unitErrors(u)...)
			}
		}
	}
	for i := range all {
		if !env.RetryHooks() {
			all[i].RetryAt = time.Time{}
		}
	}
	return all, nil
}

func (w *statusInput) unitErrors(u Unit) (all []UnitError) {
	if f := w.workflows[u.Name].Failure; f != nil && u.Resolved == Unresolved {
		all = append(all, UnitError{Unit: u.Name, Relation: NoRelation, Failure: *f})
	}
	states := w.relationStates[u.Name]
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if f := states[id].Failure; f != nil && u.ResolvedRelations[id] == Unresolved {
			all = append(all, UnitError{Unit: u.Name, Relation: id, Name: states[id].Name, Failure: *f})
		}
	}
	return all
}
