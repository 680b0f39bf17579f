package tools

import (
	"bijou/hookenv"
)

func prepareUnitRelations(f *hookenv.FlagSet) hookenv.Runner {
	l := &relationLister{listed: typeRelationID}
	f.AddFormat()
	return l.run
}
