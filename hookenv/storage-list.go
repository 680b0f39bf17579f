package hookenv

import "context"

func storageList() Tool {
	return Tool{
		Name:     "storage-list",
		Summary:  "list the unit's storage",
		Usage:    "[NAME]",
		Notes:    "There is none: this version of bijou has no storage to give.",
		Examples: []string{"storage-list", "storage-list --format=json data"},
		prepare: func(f *flagSet) runner {
			o := &output{}
			o.addFlag(f)
			return func(_ context.Context, inv *invocation) error {
				if err := inv.limitArgs(1); err != nil {
					return err
				}
				return o.print(inv, []string{})
			}
		},
	}
}
