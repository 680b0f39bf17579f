package state

import (
	"maps"
	"slices"
	"strings"

	"bijou/state/store"
)

// Writes are what one run of an Update is going to write: who commits it need
// not read it again.
type Writes struct{ ops []store.Op }

// Writes is what was written so far. It is worth something once the Update has
// succeeded.
func (tx *Tx) Writes() Writes {
	tx.checkOpen()
	var w Writes
	for _, key := range slices.Sorted(maps.Keys(tx.buffer.writes)) {
		w.ops = append(w.ops, tx.buffer.writes[key])
	}
	return w
}

// Keys are those that were written or removed.
func (w Writes) Keys() (keys []string) {
	for _, op := range w.ops {
		keys = append(keys, op.Key)
	}
	return keys
}

// Apply brings what was read of a unit's records up to date, in place.
func (w Writes) Apply(unit string, u *Uniter) error {
	for _, op := range w.ops {
		rest, own := strings.CutPrefix(op.Key, uniterPrefix(unit))
		switch {
		case !own:
		case op.Delete:
			u.dropRecord(rest)
		default:
			if err := u.decodeRecord(rest, store.KV{Key: op.Key, Value: op.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropRecord forgets one record, by the rest of its key as in take.
func (u *Uniter) dropRecord(rest string) {
	switch rest {
	case "op":
		u.Op = nil
		return
	case "workflow":
		u.Workflow = Workflow{}
		return
	}
	id, member, ok := parseRelationKey(rest)
	switch {
	case !ok:
	case member == "":
		delete(u.Relations, id)
	default:
		delete(u.Members[id], member)
		if len(u.Members[id]) == 0 {
			delete(u.Members, id)
		}
	}
}
