package updater

import (
	"time"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Change writes or removes one key. A nil Value removes the key. All changes of one decision are written in
// one transaction, which fails if anything on which the decision was based has changed.
type Change struct {
	Key   string
	Value any
}

// Put returns the change that writes the key.
func Put(key string, value any) Change { return Change{Key: key, Value: value} }

// Remove returns the change that removes the key.
func Remove(key string) Change { return Change{Key: key} }

// Replace returns the changes that write a new value to the key. [Put] keeps unknown fields of the previous
// value. Replace does not, since an operator's new request has nothing in common with an earlier one.
func Replace(key string, value any) []Change { return []Change{Remove(key), Put(key, value)} }

// Apply adds a decision's changes to a transaction. A change without a value removes its key.
func Apply(tx *keyspace.Tx, changes []Change) error {
	for _, c := range changes {
		if err := tx.PutOrRemove(c.Key, c.Value, c.Value != nil); err != nil {
			return err
		}
	}
	return nil
}

// Audit adds a record of an operator's action to the transaction that carries out the action. It sets the
// record's ID and time.
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
