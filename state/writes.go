package state

import (
	"maps"
	"slices"

	"bijou/state/store"
)

// Writes are the operations that one run of an Update is going to commit: whoever commits it need not
// read it again.
type Writes struct{ ops []store.Op }

// Writes returns what was written so far. It is valid once the Update has succeeded.
func (tx *Tx) Writes() Writes {
	tx.checkOpen()
	var w Writes
	for _, key := range slices.Sorted(maps.Keys(tx.buffer.writes)) {
		w.ops = append(w.ops, tx.buffer.writes[key])
	}
	return w
}

// Keys lists the keys that were written or removed.
func (w Writes) Keys() (keys []string) {
	for _, op := range w.ops {
		keys = append(keys, op.Key)
	}
	return keys
}
