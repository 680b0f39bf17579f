package hookenv

import "context"

func storageGet() Tool {
	return Tool{
		Name:     "storage-get",
		Summary:  "describe storage",
		Usage:    "[-s ID] [KEY]",
		Notes:    "There is none: this version of bijou has no storage to give. It answers with an error.",
		Examples: []string{"storage-get -s data/0 location"},
		prepare: func(f *flagSet) runner {
			id, o := "", &output{}
			f.addString(&id, "which storage", "ID", "s")
			o.addFlag(f)
			return func(_ context.Context, inv *invocation) error {
				if id == "" {
					return usagef("no storage instance specified")
				}
				if err := inv.limitArgs(1); err != nil {
					return err
				}
				return notSupported(inv.tool.Name)
			}
		},
	}
}
