package juju

import (
	"fmt"
	"maps"
	"slices"

	"bijou/state"
)

type addStorageCmd struct {
	Unit    string   `arg:"" help:"The unit."`
	Storage []string `arg:"" name:"name[=pool,size,count]" help:"Storage of its charm, with a pool, a size and a count, in any order."`
	waitFlags
}

// Run adds all of the storage, or none, and prints the ids of the added storage.
func (c addStorageCmd) Run(o *operator) error {
	directives, err := parseDirectives(c.Storage)
	if err != nil {
		return err
	}

	var added []string
	err = o.update(func(tx *state.Tx) error {
		// update may call this function again.
		added = nil
		for _, name := range slices.Sorted(maps.Keys(directives)) {
			ids, err := tx.AddStorage(c.Unit, name, directives[name])
			if err != nil {
				return err
			}
			added = append(added, ids...)
		}

		return nil
	})
	if err != nil {
		return err
	}

	for _, id := range added {
		fmt.Fprintf(o.streams.Out, "added storage %s to %s\n", id, c.Unit)
	}
	o.noteAffected(untilIdle, c.Unit) // --wait waits until the unit is idle
	return nil
}
