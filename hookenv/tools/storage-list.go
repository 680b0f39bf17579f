package tools

import (
	"context"
	"path"

	"bijou/hookenv"
)

// listStorage prints the ids of the unit's storage. With an argument it prints only the storage that it names.
func listStorage(ctx context.Context, inv *hookenv.Invocation) error {
	all, err := inv.Hook.Storages(ctx)
	if err != nil {
		return err
	}

	ids := []string{}
	for _, s := range all {
		if len(inv.Args) == 0 || path.Dir(s.ID) == inv.Args[0] {
			ids = append(ids, s.ID)
		}
	}

	return inv.Print(ids)
}
