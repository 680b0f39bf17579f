package keyspace

import (
	"maps"
	"slices"
)

// Writes returns what was changed so far, by key: whoever commits it need not read it again.
// What was written as it had been read is none.
func (tx *Tx) Writes() (changes []Change) {
	tx.checkOpen()
	for _, key := range slices.Sorted(maps.Keys(tx.buffer.writes)) {
		op := tx.buffer.writes[key]
		if tx.buffer.isNoop(op) {
			continue
		}
		changes = append(changes, Change{KeyValue: KeyValue{Key: key, Value: op.Value}, Deleted: op.Delete})
	}
	return changes
}
