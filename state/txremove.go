package state

import (
	"context"
	"slices"
)

func (tx *Tx) removeBelow(prefix string, limit int) (left int, err error) {
	kvs, err := tx.list(prefix)
	if err != nil {
		return 0, err
	}
	for i, kv := range kvs {
		if i == limit {
			return len(kvs) - limit, nil
		}
		tx.remove(kv.Key)
	}
	return 0, nil
}

// maxRemovedKeys is few of a transaction, which leaves room for what else is in it.
const maxRemovedKeys = 64

// maxFewRemoved is how many left-over keys one removal takes along.
const maxFewRemoved = 4

// removeFew leaves what is more than a little.
func (tx *Tx) removeFew(prefixes ...string) error {
	for _, prefix := range prefixes {
		kvs, err := tx.listUnguarded(prefix)
		if err != nil {
			return err
		}
		for _, kv := range kvs[:min(maxFewRemoved, len(kvs))] {
			tx.remove(kv.Key)
		}
	}
	return nil
}

// isPrefixEmpty makes the commit conditional on the prefix staying empty. If there are
// keys, the commit is conditional on one of them only (the last to come), so that a
// thousand who leave at once do not all conflict with each other; and whoever leaves
// last is sure to find out.
func (tx *Tx) isPrefixEmpty(prefix string) (bool, error) {
	kvs, err := tx.listUnguarded(prefix)
	if err != nil {
		return false, err
	}
	if len(kvs) == 0 {
		kvs, err = tx.list(prefix)
		return len(kvs) == 0, err
	}
	_, _, err = tx.get(kvs[len(kvs)-1].Key)
	return false, err
}

// removeKeys removes keys that nobody writes again, in batches without conditions.
func (s *State) removeKeys(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, maxRemovedKeys) {
		err := s.Update(ctx, func(tx *Tx) error {
			for _, key := range batch {
				tx.remove(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
