package tools

import "bijou/hookenv"

func prepareUnitRelations(f *hookenv.FlagSet) hookenv.Runner {
	l := &relationLister{kind: typeRelationID}
	l.Output.AddFlag(f)
	return l.run
}
