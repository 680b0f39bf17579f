package juju

import (
	"fmt"

	"bijou/state"
)

// changeStorage calls change once for each storage, in one transaction, and prints a line for each storage. An id
// that is given twice counts once. lineFormat is the format of the line, in which %s stands for the storage's id.
// The agents of the storages' units then carry out the change.
func (o *operator) changeStorage(
	ids []string,
	lineFormat string,
	change func(tx *state.Tx, id string) error,
) error {
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
		fmt.Fprintf(o.streams.Out, lineFormat+"\n", id)
	}
	o.noteAffected(untilIdle, units...) // --wait waits until they are idle
	return nil
}
