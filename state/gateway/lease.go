package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// maxLeaseTTL limits how long a lease stays after its client has stopped refreshing it.
const maxLeaseTTL = time.Minute

// isOwnKey reports whether a key belongs to the gateway. The gateway puts one key under each lease, with the
// name of the lease's identity. So every gateway to the store knows the identity of a lease, and the key is
// removed with the lease.
func isOwnKey(key string) bool { return strings.HasPrefix(key, keys.GatewayLeases) }

// leaseKey returns the key that the gateway puts under a lease of the session's identity.
func (s *session) leaseKey(id store.LeaseID) string {
	return keys.GatewayLease(string(s.who), int64(id))
}

// Grant grants a lease to the identity.
func (s *session) Grant(ctx context.Context, request *protocol.GrantRequest) (*protocol.GrantResponse, error) {
	id, err := s.grant(ctx, time.Duration(request.GetTtlMilliseconds())*time.Millisecond)
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.GrantResponse{Lease: int64(id)}, nil
}

// grant grants a lease to the identity. It returns an error if the TTL is above maxLeaseTTL, or if the identity
// already has maxLeases leases. Concurrent calls wait for each other.
func (s *session) grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if ttl > maxLeaseTTL {
		return 0, fmt.Errorf("cannot grant a lease of %s: the limit is %s", ttl, maxLeaseTTL)
	}

	select {
	case s.granting <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-s.granting }()

	// Try again after a conflict: a lease of the identity has ended in the meantime, or another gateway has
	// granted one to the identity.
	for {
		id, err := s.grantOnce(ctx, ttl)
		if !errors.Is(err, store.ErrConflict) {
			return id, err
		}
	}
}

// grantOnce grants a lease, and records it as the identity's. It returns an error if the identity already has
// maxLeases leases. It returns ErrConflict, and leaves no lease, if the identity's leases change at the same
// time.
func (s *session) grantOnce(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	existing, revision, err := s.g.leasesOf(ctx, s.who)
	if err != nil {
		return 0, err
	}
	if len(existing) >= maxLeases {
		return 0, fmt.Errorf("cannot grant a lease: %s already has %d", s.who, len(existing))
	}

	id, err := s.g.leases.GrantLease(ctx, ttl)
	if err != nil {
		return 0, err
	}

	// If the gateway is killed before this commit, the lease expires unused.
	putKey := store.Op{Key: s.leaseKey(id), Lease: id}
	unchanged := store.Cond{Prefix: keys.GatewayLeasesOf(string(s.who)), Revision: revision}
	_, err = s.g.store.Commit(ctx, store.Txn{Conds: []store.Cond{unchanged}, Ops: []store.Op{putKey}})
	if err == nil {
		return id, nil
	}
	// It may be unknown whether the commit was made. Nobody refreshes the lease, so it expires.
	if !errors.Is(err, store.ErrConflict) {
		return 0, err
	}

	// The caller tries again, with a new lease.
	if revokeErr := s.g.leases.RevokeLease(ctx, id); revokeErr != nil {
		return 0, revokeErr
	}
	return 0, err
}

// Refresh refreshes a lease of the identity.
func (s *session) Refresh(ctx context.Context, request *protocol.RefreshRequest) (*protocol.RefreshResponse, error) {
	lives, err := s.refresh(ctx, store.LeaseID(request.GetLease()))
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.RefreshResponse{Lives: lives}, nil
}

// refresh refreshes a lease. lives is false if the lease does not exist or belongs to a different identity.
func (s *session) refresh(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	owns, err := s.owns(ctx, id)
	if err != nil {
		return false, err
	}
	if !owns {
		return false, nil
	}
	return s.g.leases.RefreshLease(ctx, id)
}

// Revoke revokes a lease of the identity. It does nothing if the lease does not exist or belongs to a different
// identity.
func (s *session) Revoke(ctx context.Context, request *protocol.RevokeRequest) (*protocol.RevokeResponse, error) {
	err := s.revoke(ctx, store.LeaseID(request.GetLease()))
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.RevokeResponse{}, nil
}

// revoke revokes a lease. It does nothing if the lease does not exist or belongs to a different identity.
func (s *session) revoke(ctx context.Context, id store.LeaseID) error {
	owns, err := s.owns(ctx, id)
	if err != nil {
		return err
	}
	if !owns {
		return nil
	}
	return s.g.leases.RevokeLease(ctx, id)
}

// owns reports whether the lease exists and belongs to the identity.
func (s *session) owns(ctx context.Context, id store.LeaseID) (bool, error) {
	snap, err := s.g.store.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Close()

	_, ok, err := snap.Get(ctx, s.leaseKey(id))
	return ok, err
}

// RevokeAll revokes all leases of an identity, whose endpoint must be closed. It is idempotent.
func (g *Gateway) RevokeAll(ctx context.Context, who Identity) error {
	ids, _, err := g.leasesOf(ctx, who)
	if err != nil {
		return fmt.Errorf("cannot find the leases of %s: %w", who, err)
	}

	for _, id := range ids {
		if err := g.leases.RevokeLease(ctx, id); err != nil {
			return fmt.Errorf("cannot end a lease of %s: %w", who, err)
		}
	}
	return nil
}

// leasesOf returns the leases of an identity, and the revision at which they were read.
func (g *Gateway) leasesOf(ctx context.Context, who Identity) (ids []store.LeaseID, revision int64, err error) {
	snap, err := g.store.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer snap.Close()

	prefix := keys.GatewayLeasesOf(string(who))
	kvs, err := snap.List(ctx, prefix)
	if err != nil {
		return nil, 0, err
	}
	// Skip keys that do not name a lease.
	for _, kv := range kvs {
		if id, err := strconv.ParseInt(strings.TrimPrefix(kv.Key, prefix), 10, 64); err == nil {
			ids = append(ids, store.LeaseID(id))
		}
	}

	revision, err = snap.Revision(ctx)
	return ids, revision, err
}
