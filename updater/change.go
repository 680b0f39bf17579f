package updater

import "bijou/state/keyspace"

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

// Apply puts a decision's changes into a transaction.
func Apply(tx *keyspace.Tx, changes []Change) error {
	for _, c := range changes {
		if c.Value == nil {
			tx.Remove(c.Key)
			continue
		}
		if err := tx.Put(c.Key, c.Value); err != nil {
			return err
		}
	}
	return nil
}
