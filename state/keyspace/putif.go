package keyspace

import (
	"context"
	"errors"

	"bijou/state/store"
)

// PutIf writes the key unless guard was written since that revision (View.GetKV), in one
// request to the store; written is false if it was.
func (s *Space) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written bool, err error) {
	at, err := s.putIf(ctx, []store.Cond{{Key: guard, Revision: revision}}, key, doc)
	return at != 0, err
}

// putIf returns at which revision the key was written; 0 if a condition did not hold.
func (s *Space) putIf(ctx context.Context, conds []store.Cond, key string, doc any) (revision int64, err error) {
	value, err := Encode(key, doc)
	if err != nil {
		return 0, err
	}
	revision, err = s.store.Commit(ctx, store.Txn{Conds: conds, Ops: []store.Op{{Key: key, Value: value}}})
	if errors.Is(err, store.ErrConflict) {
		return 0, nil
	}
	return revision, err
}

// PutIf is Space.PutIf, conditional on the claim, too: Update tells if the claim was the
// condition that failed.
func (c *Claim) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written bool, err error) {
	at, err := c.space.putIf(ctx, []store.Cond{c.fenceCond(), {Key: guard, Revision: revision}}, key, doc)
	return at != 0, err
}

// PutIf is Space.PutIf, conditional on this leadership, too. It returns at which revision
// the key was written; 0 if it was not, for whichever reason: Update tells if that is the
// leadership's end. It is for one goroutine at a time.
func (l *Leadership) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written int64, err error) {
	if l.revision == 0 {
		if l.revision, err = l.readRevision(ctx); err != nil || l.revision == 0 {
			return 0, err
		}
	}
	return l.session.space.putIf(ctx, []store.Cond{{Key: l.key, Revision: l.revision}, {Key: guard, Revision: revision}}, key, doc)
}

// readRevision returns at which revision the session wrote the leader's key; 0 if another
// one leads.
func (l *Leadership) readRevision(ctx context.Context) (int64, error) {
	return Read(ctx, l.session.space, func(v *View) (int64, error) {
		kv, err := v.GetKV(l.key)
		if err != nil || kv.Revision == 0 {
			return 0, err
		}
		p, err := Decode[Presence](kv)
		if err != nil || !l.session.Wrote(p) {
			return 0, err
		}
		return kv.Revision, nil
	})
}
