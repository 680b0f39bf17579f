package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareStorageGet declares the options of storage-get, which prints the kind and location of a storage.
func prepareStorageGet(f *hookenv.FlagSet) hookenv.Runner {
	id := ""
	f.AddString(&id, "the id of the storage; default: the storage that the hook is about", "ID", "s")
	f.AddFormat()

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id := cmp.Or(id, inv.Facts.Storage)
		if id == "" {
			return hookenv.UsageErrorf("no storage instance specified")
		}
		if err := inv.LimitArgs(1); err != nil {
			return err
		}

		all, err := inv.Hook.Storages(ctx)
		if err != nil {
			return err
		}

		i := slices.IndexFunc(all, func(s hookapi.Storage) bool { return s.ID == id })
		if i < 0 {
			return fmt.Errorf("storage %q not found", id)
		}

		described := map[string]string{"kind": "filesystem", "location": all[i].Location}
		attribute := inv.Arg(0)
		if attribute == "" {
			return inv.Print(described)
		}

		value, known := described[attribute]
		if !known {
			return fmt.Errorf("invalid storage attribute %q", attribute)
		}

		return inv.Print(value)
	}
}
