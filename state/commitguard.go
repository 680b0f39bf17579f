package state

import (
	"context"

	"bijou/state/store"
)

// guardConds returns the conditions of every commit beside what it has read: the
// environment has not moved to another store, agents and leaders do not begin while it
// is copied, and the claim under which an agent works is still its own. They cost a
// commit nothing but the comparison.
func (b *txBuffer) guardConds() (conds []store.Cond) {
	if b.fence.Key != "" {
		conds = append(conds, b.fence)
	}
	if _, read := b.reads[movedKey]; !read {
		conds = append(conds, store.Cond{Key: movedKey})
	}
	if _, read := b.reads[copyLockKey]; !read && b.hasLeasedWrite() {
		conds = append(conds, store.Cond{Key: copyLockKey})
	}
	return conds
}

// hasLeasedWrite reports whether an agent or a leader is about to begin.
func (b *txBuffer) hasLeasedWrite() bool {
	for _, op := range b.writes {
		if op.Lease != 0 && op.Key != copyLockKey {
			return true
		}
	}
	return false
}

// explainConflict returns why a commit with guards has met a conflict; nil if the guards
// were not the reason.
func (s *State) explainConflict(ctx context.Context, b *txBuffer) error {
	return s.View(ctx, func(v *View) error {
		if err := b.checkFence(v); err != nil {
			return err
		}
		if _, read := b.reads[movedKey]; !read {
			if err := v.checkNotMoved(); err != nil {
				return err
			}
		}
		by, ok, err := load[copyLockRecord](v, copyLockKey)
		if err != nil || !ok || !b.hasLeasedWrite() {
			return err
		}
		return refuse(ErrRunning, "the environment is being copied to %q, by process %d on host %q", by.To, by.PID, by.Host)
	})
}

// copyLockRecord names who copies an environment just now.
type copyLockRecord struct {
	presence
	To string `json:"to"`
}
