package juju

import (
	"fmt"

	"bijou/state"
)

// changeStorage applies change to all storages, or to none. It prints a line for each, in the format says.
// The agents do the rest.
func (o *operator) changeStorage(ids []string, says string, change func(tx *state.Tx, id string) error) error {
	var units []string
	err := o.update(func(tx *state.Tx) error {
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
