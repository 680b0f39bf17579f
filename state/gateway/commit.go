package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// Commit commits what the identity has a right to as a whole, on the conditions that the rights were
// decided by besides its own.
func (s *session) Commit(ctx context.Context, request *protocol.CommitRequest) (*protocol.CommitResponse, error) {
	revision, err := s.commit(ctx, request.Txn())
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.CommitResponse{Revision: revision}, nil
}

func (s *session) commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := txn.Check(); err != nil {
		return 0, err
	}

	conds, err := s.decide(ctx, txn)
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

// decide returns the conditions on which the transaction is allowed. Its snapshot is closed by then.
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
	decidedBy := slices.Clone(v.conds)

	if err := v.mayDependOn(ctx, txn.Conds); err != nil {
		return nil, err
	}
	if refusal == nil {
		return decidedBy, nil
	}

	// What the identity had a right to when it read may be refused by now: it is to read again.
	changed, err := v.hasChanged(ctx, txn.Conds)
	if err == nil && changed {
		err = store.ErrConflict
	}
	return nil, cmp.Or(err, refusal)
}

// hasChanged reports whether the condition of a key does not hold. The identity may read all of the keys.
func (v *view) hasChanged(ctx context.Context, conds []store.Cond) (bool, error) {
	for _, c := range conds {
		if c.Key == "" {
			continue
		}
		kv, _, err := v.snap.Get(ctx, c.Key)
		if err != nil || kv.Revision != c.Revision {
			return err == nil, err
		}
	}
	return false, nil
}

// mayDependOn asks the rights for what a commit is conditional on, as for a read: whether something
// has changed tells something of it. It makes no conditions, as no read does.
func (v *view) mayDependOn(ctx context.Context, conds []store.Cond) error {
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
	if err := v.snap.Prefetch(ctx, keys...); err != nil {
		return err
	}

	for _, key := range keys {
		if _, _, err := v.get(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// requireLease returns ErrLeaseLost for the lease of another identity: to this one it never was.
func (s *session) requireLease(ctx context.Context, v *view, o store.Op) error {
	if o.Lease == 0 || o.Delete {
		return nil
	}

	_, ok, err := v.snap.Get(ctx, s.leaseKey(o.Lease))
	if err == nil && !ok {
		err = store.ErrLeaseLost
	}
	return err
}
