package tools

import "bijou/hookenv"

func prepareUnitRelations(f *hookenv.FlagSet) hookenv.Runner {
	l := &relationLister{listed: typeRelationID}
	l.FormatOption.AddFlag(f)
	return l.run
}
