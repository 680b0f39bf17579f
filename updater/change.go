package updater

import (
	"time"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Change is one key to write; a nil Value removes it. All changes of one decision are one
// transaction, conditional on all that the decision was made on.
type Change struct {
	Key   string
	Value any
}

// Put returns the change that writes the key.
func Put(key string, value any) Change { return Change{Key: key, Value: value} }

// Remove returns the change that removes the key.
func Remove(key string) Change { return Change{Key: key} }

// Replace returns the changes that write a new value to the key. Unlike [Put] it keeps no unknown fields of
// the former value, since an operator's new wish has nothing of an earlier one.
func Replace(key string, value any) []Change { return []Change{Remove(key), Put(key, value)} }

// Apply puts a decision's changes into a transaction.
func Apply(tx *keyspace.Tx, changes []Change) error {
	for _, c := range changes {
		if err := tx.PutOrRemove(c.Key, c.Value, c.Value != nil); err != nil {
			return err
		}
	}
	return nil
}

// Audit records an operator's action in the transaction that carries it out.
func Audit(tx *keyspace.Tx, a record.Audit) error {
	last, _, err := keyspace.Load[int](tx, keys.AuditCounter)
	if err != nil {
		return err
	}

	a.ID = last + 1
	a.At = time.Now().UTC()
	if err := tx.Put(keys.AuditCounter, a.ID); err != nil {
		return err
	}

	return tx.Put(keys.Audit(a.ID), a)
}
