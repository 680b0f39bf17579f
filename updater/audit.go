package updater

import (
	"errors"
	"time"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Audit records what somebody does, in the transaction that does it.
func Audit(tx *keyspace.Tx, a record.Audit) error {
	last, err := ReadKey[int](tx.View, keys.AuditCounter)
	if err != nil {
		return err
	}
	if a.ID = 1; last != nil {
		a.ID = *last + 1
	}
	a.At = time.Now().UTC()
	return errors.Join(tx.Put(keys.AuditCounter, a.ID), tx.Put(keys.Audit(a.ID), a))
}
