package tools

import "bijou/hookenv"

func unitRelations() hookenv.Tool {
	return hookenv.Tool{Name: "unit-relations", Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
		l := &relationLister{kind: typeRelationID}
		l.Output.AddFlag(f)
		return l.run
	}}
}
