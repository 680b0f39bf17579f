package juju

import (
	"fmt"

	"bijou/state"
)

// changeStorage applies the function change to all storages, each once, or to none. It prints a line for each storage.
// The format of the line is in the argument says. The agents then carry out the change.
func (o *operator) changeStorage(ids []string, says string, change func(tx *state.Tx, id string) error) error {
	ids = distinct(ids)
	var units []string
	err := o.update(func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		units = nil
		for _, id := range ids {
			if err := change(tx, id); err != nil {
				return err
			}
			s, err := tx.Storage(id)
			if err != nil {
				return err
			}
			units = append(units, s.Unit)
		}

		return nil
	})
	if err != nil {
		return err
	}

	for _, id := range ids {
		fmt.Fprintf(o.streams.Out, says+"\n", id)
	}
	o.noteAffected(untilIdle, units...)
	return nil
}
