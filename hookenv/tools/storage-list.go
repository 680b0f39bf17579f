package tools

import (
	"context"
	"path"

	"bijou/hookenv"
)

// listStorage prints the ids of the unit's storage. With an argument, it prints only the storage of that name.
func listStorage(ctx context.Context, inv *hookenv.Invocation) error {
	storages, err := inv.Hook.Storages(ctx)
	if err != nil {
		return err
	}

	ids := []string{}
	for _, s := range storages {
		name := path.Dir(s.ID) // "data" for "data/0"
		if len(inv.Args) == 0 || name == inv.Args[0] {
			ids = append(ids, s.ID)
		}
	}

	return inv.Print(ids)
}
