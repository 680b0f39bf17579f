package tools

import "bijou/hookenv"

func unitRelations() hookenv.Tool {
	return hookenv.Tool{
		Name:     "unit-relations",
		Summary:  "list the ids of all relations of a unit",
		Usage:    "[UNIT_NAME]",
		Notes:    "It prints what relation-list --type=relation-id prints.",
		Examples: []string{"unit-relations", `for id in $(unit-relations); do relation-set -r "$id" ready=true; done`},
		Prepare: func(f *hookenv.FlagSet) hookenv.Runner {
			l := &relationLister{kind: typeRelationID}
			l.Output.AddFlag(f)
			return l.run
		},
	}
}
