package keyspace

import (
	"context"
	"errors"

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
