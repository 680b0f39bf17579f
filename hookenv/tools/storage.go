package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func prepareStorageGet(f *hookenv.FlagSet) hookenv.Runner {
	id := ""
	f.AddString(&id, "which storage; default: the one that the hook is about", "ID", "s")
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

// listStorage prints the ids of the unit's storage, or of those with the first argument's name.
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

// addStorage requests more storage for the unit. Arguments are NAME or NAME=COUNT. The operator, not the
// charm, decides on pool and size.
func addStorage(ctx context.Context, inv *hookenv.Invocation) error {
	counts := map[string]int{}
	for _, word := range inv.Args {
		name, text, given := strings.Cut(word, "=")
		count, err := strconv.Atoi(text)
		if given && (err != nil || count < 1 || count > 50) {
			return hookenv.UsageErrorf(
				"%q: want NAME or NAME=COUNT, 50 at most: a charm says how many, and nothing else",
				word,
			)
		}
		counts[name] += max(count, 1)
	}

	if err := inv.Hook.AddStorage(ctx, counts); err != nil {
		return fmt.Errorf("cannot add storage: %w", err)
	}

	return nil
}
