package keyspace

import (
	"maps"
	"slices"
)

// Writes returns what was written and removed so far, by key: whoever commits it need not
// read it again.
func (tx *Tx) Writes() (changes []Change) {
	tx.checkOpen()
	for _, key := range slices.Sorted(maps.Keys(tx.buffer.writes)) {
		op := tx.buffer.writes[key]
		changes = append(changes, Change{KeyValue: KeyValue{Key: key, Value: op.Value}, Deleted: op.Delete})
	}
	return changes
}
