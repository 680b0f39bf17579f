package neco

import (
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type resumeCmd struct{ reasonFlag }

// Run removes the pause. If updates are not paused, it prints a note and returns no error.
func (resumeCmd) Run(o *operator) error {
	paused := false
	err := o.update(func(tx *keyspace.Tx) (err error) {
		_, paused, err = keyspace.Load[record.Pause](tx, keys.Pause)
		if paused {
			tx.Remove(keys.Pause)
		}
		return err
	})
	if err != nil {
		return err
	}

	if !paused {
		o.note("updates were not paused")
	}

	return nil
}
