package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/access"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// Commit commits a transaction if the identity has the right to all of it. It adds the conditions on which
// the rights depend.
func (s *session) Commit(ctx context.Context, request *protocol.CommitRequest) (*protocol.CommitResponse, error) {
	revision, err := s.commit(ctx, request.Txn())
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.CommitResponse{Revision: revision}, nil
}

// commit commits the transaction of the identity, and returns its revision. It adds the conditions under
// which the identity has the right to make these changes.
func (s *session) commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := txn.Check(); err != nil {
		return 0, err
	}

	conds, err := s.decideInTurn(ctx, txn)
	if err != nil {
		return 0, err
	}

	for _, c := range conds {
		if !slices.Contains(txn.Conds, c) {
			txn.Conds = append(txn.Conds, c)
		}
	}
	return s.g.store.Commit(ctx, txn)
}

// decideInTurn is like decide. Of the commits that write the head of a blob, it decides about only one at a
// time, since that decision can read the whole blob.
func (s *session) decideInTurn(ctx context.Context, txn store.Txn) ([]store.Cond, error) {
	isHead := func(o store.Op) bool { return strings.HasPrefix(o.Key, access.BlobHeads) }
	if !slices.ContainsFunc(txn.Ops, isHead) {
		return s.decide(ctx, txn)
	}

	select {
	case s.blobHeads <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.blobHeads }()
	return s.decide(ctx, txn)
}

// decide returns the conditions under which the identity has the right to commit the transaction. If the
// identity has no such right, decide returns store.ErrDenied, or store.ErrConflict if a key in the
// transaction's own conditions has changed. It returns store.ErrLeaseLost if requireLease does. It closes its
// snapshot before it returns.
func (s *session) decide(ctx context.Context, txn store.Txn) ([]store.Cond, error) {
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return nil, err
	}
	defer closeView()

	for _, o := range txn.Ops {
		if isOwnKey(o.Key) {
			return nil, fmt.Errorf("%w: %q is the gateway's own key", store.ErrDenied, o.Key)
		}
		if err := s.requireLease(ctx, v, o); err != nil {
			return nil, err
		}
	}

	refusal := v.rights.MayCommit(ctx, txn.Ops)
	if refusal != nil && !errors.Is(refusal, store.ErrDenied) {
		return nil, refusal
	}

	// The commit needs only the conditions that the rights to its writes depend on. Those that mayDependOn adds
	// are about the right to read the keys of the transaction's own conditions. They have no effect on the commit.
	decidedBy := slices.Clone(v.conds)
	if err := v.mayDependOn(ctx, txn.Conds); err != nil {
		return nil, err
	}
	if refusal == nil {
		return decidedBy, nil
	}

	// The identity may have had the right when it read the keys. If they have changed since then, the
	// identity must read them again.
	changed, err := v.hasChanged(ctx, txn.Conds)
	if err == nil && changed {
		err = store.ErrConflict
	}
	return nil, cmp.Or(err, refusal)
}

// hasChanged reports whether one of the conditions on keys no longer holds. The caller must have checked that
// the identity can read the keys.
func (v *view) hasChanged(ctx context.Context, conds []store.Cond) (bool, error) {
	for _, c := range conds {
		if c.Key == "" {
			continue
		}
		kv, _, err := v.snap.Get(ctx, c.Key)
		if err != nil {
			return false, err
		}
		if kv.Revision != c.Revision {
			return true, nil
		}
	}

	return false, nil
}

// mayDependOn returns an error unless the identity can read all keys and prefixes in the conditions of a
// commit, since the commit's result shows whether one of them has changed. The commit does not become
// conditional on the rights to read them.
func (v *view) mayDependOn(ctx context.Context, conds []store.Cond) error {
	// Operators can read everything, so spare them the reads.
	if v.rights == (allRights{}) {
		return nil
	}

	var keys []string
	for _, c := range conds {
		if c.Key != "" {
			keys = append(keys, c.Key)
			continue
		}
		if err := v.rights.MayList(ctx, c.Prefix); err != nil {
			return err
		}
	}
	if err := v.prefetch(ctx, keys); err != nil {
		return err
	}

	// get checks the right to read each key. The values do not matter.
	for _, key := range keys {
		if _, _, err := v.get(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// requireLease returns ErrLeaseLost if the operation's lease does not exist or belongs to a different
// identity.
func (s *session) requireLease(ctx context.Context, v *view, o store.Op) error {
	// Deletions, and operations without a lease, need no check.
	if o.Lease == 0 || o.Delete {
		return nil
	}

	_, ok, err := v.snap.Get(ctx, s.leaseKey(o.Lease))
	if err != nil {
		return err
	}
	if !ok {
		return store.ErrLeaseLost
	}

	return nil
}
