package hookenv

import "context"

func storageAdd() Tool {
	return Tool{
		Name:     "storage-add",
		Summary:  "add storage",
		Usage:    "NAME[=COUNT]...",
		Notes:    "This version of bijou has no storage to give. It answers with an error.",
		Examples: []string{"storage-add data=1"},
		prepare: func(*flagSet) runner {
			return func(_ context.Context, inv *invocation) error {
				if len(inv.args) == 0 {
					return usagef("storage add requires a storage directive")
				}
				return notSupported(inv.tool.Name)
			}
		},
	}
}
