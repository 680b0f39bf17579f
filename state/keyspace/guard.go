package keyspace

import (
	"context"
	"errors"
	"slices"

	"bijou/state/store"
)

// guardConds returns the conditions of every commit beside what it has read: those of the
// guards, and that the claim under which a process works is still its own.
func (s *Space) guardConds(b *txBuffer) (conds []store.Cond) {
	if b.fence.Key != "" {
		conds = append(conds, b.fence)
	}
	for _, g := range s.guards {
		if g.holds(b) {
			conds = append(conds, store.Cond{Key: g.Key})
		}
	}
	return conds
}

func (g Guard) holds(b *txBuffer) bool {
	_, read := b.cachedRead(g.Key)
	return !read && (!g.Leased || b.hasLeasedWrite())
}

func (b *txBuffer) hasLeasedWrite() bool {
	for _, op := range b.writes {
		if op.Lease != 0 {
			return true
		}
	}
	return false
}

// explainConflict returns why a commit with guards has met a conflict; nil if the guards
// were not the reason.
func (s *Space) explainConflict(ctx context.Context, b *txBuffer) error {
	return s.View(ctx, func(v *View) error {
		if err := b.checkFence(v); err != nil {
			return err
		}
		for _, g := range s.guards {
			if !g.holds(b) {
				continue
			}
			kv, err := v.GetKV(g.Key)
			if err != nil {
				return err
			}
			if kv.Revision != 0 {
				return g.Explain(kv)
			}
		}
		return nil
	})
}

// errClaimChanged: somebody has written the claim since the update began.
var errClaimChanged = errors.New("the claim has changed")

func (b *txBuffer) checkFence(v *View) error {
	if b.fence.Key == "" {
		return nil
	}
	kv, err := v.GetKV(b.fence.Key)
	if err == nil && kv.Revision != b.fence.Revision {
		return errClaimChanged
	}
	return err
}

// RemoveBelow removes at most limit keys below the prefix, and returns how many are left.
func (tx *Tx) RemoveBelow(prefix string, limit int) (left int, err error) {
	kvs, err := tx.List(prefix)
	if err != nil {
		return 0, err
	}
	for i, kv := range kvs {
		if i == limit {
			return len(kvs) - limit, nil
		}
		tx.Remove(kv.Key)
	}
	return 0, nil
}

// MaxRemovedKeys is how many keys one transaction of a removal removes: few of a transaction, which leaves room for what else is in it.
const MaxRemovedKeys = 64

// MaxFewRemoved is how many left-over keys one removal takes along.
const MaxFewRemoved = 4

// RemoveFew removes what is left below the prefixes, if that is little.
func (tx *Tx) RemoveFew(prefixes ...string) error {
	for _, prefix := range prefixes {
		kvs, err := tx.ListUnguarded(prefix)
		if err != nil {
			return err
		}
		for _, kv := range kvs[:min(MaxFewRemoved, len(kvs))] {
			tx.Remove(kv.Key)
		}
	}
	return nil
}

// IsPrefixEmpty makes the commit conditional on the prefix staying empty. If there are
// keys, the commit is conditional on one of them only (the last to come), so that a
// thousand who leave at once do not all conflict with each other; and whoever leaves
// last is sure to find out.
func (tx *Tx) IsPrefixEmpty(prefix string) (bool, error) {
	kvs, err := tx.ListUnguarded(prefix)
	if err != nil {
		return false, err
	}
	if len(kvs) == 0 {
		kvs, err = tx.List(prefix)
		return len(kvs) == 0, err
	}
	_, _, err = tx.Get(kvs[len(kvs)-1].Key)
	return false, err
}

// RemoveKeys removes keys that nobody writes again, in batches without conditions.
func (s *Space) RemoveKeys(ctx context.Context, keys []string) error {
	for batch := range slices.Chunk(keys, MaxRemovedKeys) {
		err := s.Update(ctx, func(tx *Tx) error {
			for _, key := range batch {
				tx.Remove(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
