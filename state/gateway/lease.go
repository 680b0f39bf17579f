package gateway

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// maxLeaseTTL bounds how long a lease outlives whoever refreshed it.
const maxLeaseTTL = time.Minute

// isOwnKey reports whether a key is the gateway's own: under each lease lies one that says whose it
// is, so that any gateway before the same store can tell, and that ends with the lease.
func isOwnKey(key string) bool { return strings.HasPrefix(key, keys.GatewayLeases) }

func (s *session) leaseKey(id store.LeaseID) string {
	return keys.GatewayLease(string(s.who), int64(id))
}

// Grant makes a lease of the identity.
func (s *session) Grant(ctx context.Context, request *protocol.GrantRequest) (*protocol.GrantResponse, error) {
	id, err := s.grant(ctx, time.Duration(request.GetTtlMilliseconds())*time.Millisecond)
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.GrantResponse{Lease: int64(id)}, nil
}

func (s *session) grant(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	if ttl > maxLeaseTTL {
		return 0, fmt.Errorf("cannot grant a lease of %s: at most %s is possible", ttl, maxLeaseTTL)
	}

	has, err := s.g.leasesOf(ctx, s.who)
	if err != nil {
		return 0, err
	}
	if len(has) >= maxLeases {
		return 0, fmt.Errorf("cannot grant a lease: %s has %d already", s.who, len(has))
	}

	id, err := s.g.leases.GrantLease(ctx, ttl)
	if err != nil {
		return 0, err
	}

	// If this is the last that the gateway does, the lease expires unused.
	note := store.Op{Key: s.leaseKey(id), Lease: id}
	if _, err := s.g.store.Commit(ctx, store.Txn{Ops: []store.Op{note}}); err != nil {
		return 0, err
	}
	return id, nil
}

// Refresh refreshes a lease of the identity.
func (s *session) Refresh(ctx context.Context, request *protocol.RefreshRequest) (*protocol.RefreshResponse, error) {
	lives, err := s.refresh(ctx, store.LeaseID(request.GetLease()))
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.RefreshResponse{Lives: lives}, nil
}

func (s *session) refresh(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	if owns, err := s.owns(ctx, id); err != nil || !owns {
		return false, err
	}
	return s.g.leases.RefreshLease(ctx, id)
}

// Revoke ends a lease of the identity. Another's, as one that is lost, is no error.
func (s *session) Revoke(ctx context.Context, request *protocol.RevokeRequest) (*protocol.RevokeResponse, error) {
	err := s.revoke(ctx, store.LeaseID(request.GetLease()))
	if err != nil {
		return nil, protocol.ToStatus(err)
	}
	return &protocol.RevokeResponse{}, nil
}

func (s *session) revoke(ctx context.Context, id store.LeaseID) error {
	if owns, err := s.owns(ctx, id); err != nil || !owns {
		return err
	}
	return s.g.leases.RevokeLease(ctx, id)
}

func (s *session) owns(ctx context.Context, id store.LeaseID) (bool, error) {
	snap, err := s.g.store.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Close()

	_, ok, err := snap.Get(ctx, s.leaseKey(id))
	return ok, err
}

// RevokeAll ends all leases of an identity, whose endpoint was closed. It is idempotent.
func (g *Gateway) RevokeAll(ctx context.Context, who Identity) error {
	ids, err := g.leasesOf(ctx, who)
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

func (g *Gateway) leasesOf(ctx context.Context, who Identity) (ids []store.LeaseID, err error) {
	snap, err := g.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()

	prefix := keys.GatewayLeasesOf(string(who))
	kvs, err := snap.List(ctx, prefix)
	for _, kv := range kvs {
		if id, err := strconv.ParseInt(strings.TrimPrefix(kv.Key, prefix), 10, 64); err == nil {
			ids = append(ids, store.LeaseID(id))
		}
	}

	return ids, err
}
