package store

import "fmt"

// Limits of one transaction, the same on every store. They follow from etcd's
// defaults: 128 conditions or operations at each level of a transaction
// within a transaction, and 1.5 MiB a request. They are for what must be seen as
// one, as all that a hook has set in many relations; jobs without a bound go
// in idempotent batches.
const (
	MaxConds = 512     // conditions
	MaxOps   = 512     // operations
	MaxBytes = 1 << 20 // sum of the operations' keys and values, in bytes
)

// Size returns the sum of the operations' keys and values, in bytes.
func (t Txn) Size() (n int) {
	for _, o := range t.Ops {
		n += len(o.Key) + len(o.Value)
	}
	return n
}

// Check returns ErrTooLarge if the transaction is above a limit, and another error if a key
// is empty or occurs in two operations. Stores call it first in Commit.
func (t Txn) Check() error {
	if size := t.Size(); len(t.Conds) > MaxConds || len(t.Ops) > MaxOps || size > MaxBytes {
		return fmt.Errorf("%w: it has %d conditions, %d operations and %d bytes, at most %d, %d and %d are possible",
			ErrTooLarge, len(t.Conds), len(t.Ops), size, MaxConds, MaxOps, MaxBytes)
	}
	seen := make(map[string]bool, len(t.Ops))
	for _, o := range t.Ops {
		if o.Key == "" || seen[o.Key] {
			return fmt.Errorf("cannot commit: key %q is empty or occurs in two operations", o.Key)
		}
		seen[o.Key] = true
	}
	return nil
}
