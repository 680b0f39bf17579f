package etcd

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// Lease grants a lease of at least one second, and refreshes it. If the lease was not refreshed for ttl, its Done
// is closed. etcd counts in whole seconds, so it may keep the lease's keys a little longer.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	ttl = max(ttl, time.Second)
	id, requested, err := d.grantLease(ctx, ttl)
	if err != nil {
		return nil, err
	}

	return d.KeepLease(handle.GrantedLease{
		ID:          id,
		TTL:         ttl,
		RequestedAt: requested,
		Refresh: func(ctx context.Context) (bool, error) {
			// Leave time for a further attempt, which can reach a different member.
			ctx, cancel := context.WithTimeout(ctx, ttl/4)
			defer cancel()
			return d.RefreshLease(ctx, id)
		},
		Revoke: func(ctx context.Context) error { return d.RevokeLease(ctx, id) },
	})
}

// GrantLease grants a lease that this process does not refresh.
func (d *db) GrantLease(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	id, _, err := d.grantLease(ctx, max(ttl, time.Second))
	return id, err
}

// grantLease grants a lease. requested is the time before the request. The caller must count the lease's TTL
// from that time.
func (d *db) grantLease(
	ctx context.Context,
	ttl time.Duration,
) (id store.LeaseID, requested time.Time, err error) {
	if err := d.CheckUsable(ctx); err != nil {
		return 0, requested, err
	}
	if err := d.waitReady(ctx); err != nil {
		return 0, requested, err
	}

	wholeSeconds := int64((ttl + time.Second - 1) / time.Second) // rounded up
	var resp *clientv3.LeaseGrantResponse
	// After other errors etcd may have granted a lease, so do not request another.
	err = d.retryUnknownToken(ctx, func() (err error) {
		requested = time.Now()
		bound, cancel := d.Bound(ctx, commitTimeout)
		defer cancel()
		resp, err = d.client.Grant(bound, wholeSeconds)
		return err
	})
	if err != nil {
		return 0, requested, d.storeError(ctx, err)
	}

	return store.LeaseID(resp.ID), requested, nil
}

// RevokeLease ends the lease. It repeats the request until a member answers, for at most callTimeout. It
// returns nil if etcd no longer has the lease.
func (d *db) RevokeLease(ctx context.Context, id store.LeaseID) error {
	return d.retry(ctx, func(ctx context.Context) error {
		_, err := d.client.Revoke(ctx, clientv3.LeaseID(id))
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}

		return err
	})
}

// RefreshLease refreshes the lease, and reports whether etcd still has it. It sends the request to one member,
// without a retry. The next call can reach a different member.
func (d *db) RefreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	// cancel ends the stream.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := pb.NewLeaseClient(d.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return false, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return false, err
	}

	resp, err := stream.Recv()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil
	}

	// etcd answers with the TTL 0 if the lease does not exist.
	return err == nil && resp.TTL > 0, err
}

// listingID identifies the list of keys in a span at a revision. The list never changes within an epoch; see
// historyTracker.
type listingID struct {
	span     handle.Span
	revision int64
	epoch    int
}

// currentListing returns the id of a listing in the current epoch.
func (d *db) currentListing(span handle.Span, revision int64) listingID {
	return listingID{span: span, revision: revision, epoch: d.history.lastSeen().epoch}
}

// leasedKeyCache holds the leased keys of the newest listings. It saves most reads of leased keys, since a
// transaction's conditions are usually on prefixes that were just listed.
type leasedKeyCache struct {
	mu    sync.Mutex
	keys  map[listingID][]string // the leased keys, as etcd's keys
	order []listingID            // the listings in keys, oldest first
}

// maxCachedListings is how many listings leasedKeyCache holds.
const maxCachedListings = 256

// put remembers the leased keys of a listing, and forgets the oldest listing if there are too many.
func (c *leasedKeyCache) put(l listingID, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.keys[l]; ok {
		return
	}

	if len(c.order) == maxCachedListings {
		delete(c.keys, c.order[0])
		c.order = c.order[1:]
	}

	c.keys[l] = keys
	c.order = append(c.order, l)
}

// get returns the leased keys of a listing. It returns ok false if the listing is not in the cache.
func (c *leasedKeyCache) get(l listingID) (keys []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, ok = c.keys[l]
	return keys, ok
}

// listLeased returns the keys of a listing that were under a lease, as etcd's keys. It reads the listing only if
// the cache does not have it. It returns ErrConflict if etcd no longer has the listing's revision.
func (d *db) listLeased(ctx context.Context, l listingID) ([]string, error) {
	// The revision of a condition can be any number. At or below 0 etcd has no keys, and it does not reach the
	// greatest number.
	if l.revision <= 0 || l.revision == math.MaxInt64 {
		return nil, nil
	}
	if cached, ok := d.leasedKeys.get(l); ok {
		return cached, nil
	}

	var keys []string
	err := readPages(d.keys.spanRange(l.span), func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := d.readAt(ctx, l.revision, begin, clientv3.WithRange(end), clientv3.WithLimit(limit),
			clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}

		for _, kv := range resp.Kvs {
			if kv.Lease != 0 {
				keys = append(keys, string(kv.Key))
			}
		}

		return resp, nil
	})
	switch {
	case errors.Is(err, store.ErrHistoryLost):
		return nil, store.ErrConflict
	case errors.Is(err, rpctypes.ErrFutureRev):
		// The revision is in the future, so no key can have vanished since.
		return nil, nil
	case err != nil:
		return nil, err
	}

	d.leasedKeys.put(l, keys)
	return keys, nil
}
