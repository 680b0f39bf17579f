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
		wanted := cmp.Or(id, inv.Facts.Storage)
		if wanted == "" {
			return hookenv.UsageErrorf("no storage instance specified")
		}
		if err := inv.LimitArgs(1); err != nil {
			return err
		}

		storages, err := inv.Hook.Storages(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(storages, func(s hookapi.Storage) bool { return s.ID == wanted })
		if i < 0 {
			return fmt.Errorf("storage %q not found", wanted)
		}

		attributes := map[string]string{"kind": "filesystem", "location": storages[i].Location}
		attribute := inv.Arg(0)
		if attribute == "" {
			return inv.Print(attributes)
		}

		value, isKnown := attributes[attribute]
		if !isKnown {
			return fmt.Errorf("invalid storage attribute %q", attribute)
		}

		return inv.Print(value)
	}
}
