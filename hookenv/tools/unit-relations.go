package tools

import (
	"bijou/hookenv"
)

// prepareUnitRelations declares the options of unit-relations, which prints the ids of all relations of the unit.
func prepareUnitRelations(f *hookenv.FlagSet) hookenv.Runner {
	l := &relationLister{listed: typeRelationID}
	f.AddFormat()
	return l.run
}
