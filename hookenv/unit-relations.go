package hookenv

func unitRelations() Tool {
	return Tool{
		Name:     "unit-relations",
		Summary:  "list the ids of all relations of a unit",
		Usage:    "[UNIT_NAME]",
		Notes:    "It prints what relation-list --type=relation-id prints.",
		Examples: []string{"unit-relations", `for id in $(unit-relations); do relation-set -r "$id" ready=true; done`},
		prepare: func(f *flagSet) runner {
			l := &relationLister{kind: typeRelationID}
			l.output.addFlag(f)
			return l.run
		},
	}
}
