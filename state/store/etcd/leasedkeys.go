package etcd

import (
	"context"
	"errors"
	"math"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// listingID names a prefix at a revision: what is there never changes within an epoch.
type listingID struct {
	prefix   string
	revision int64
	epoch    int
}

func (d *db) currentListing(prefix string, revision int64) listingID {
	return listingID{prefix, revision, d.history.lastSeen().epoch}
}

// leasedKeyCache has the leased keys of the newest listings. A transaction is mostly
// conditional on what was just listed.
type leasedKeyCache struct {
	mu    sync.Mutex
	keys  map[listingID][]string // by etcd's keys
	order []listingID            // oldest first
}

const maxCachedListings = 256

func newLeasedKeyCache() *leasedKeyCache { return &leasedKeyCache{keys: map[listingID][]string{}} }

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

func (c *leasedKeyCache) get(l listingID) (keys []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, ok = c.keys[l]
	return keys, ok
}

// leasedKeysOf returns etcd's keys that were under a lease in the listing; ErrConflict if
// nobody can tell any more.
func (d *db) leasedKeysOf(ctx context.Context, l listingID) ([]string, error) {
	if keys, ok := d.leasedKeys.get(l); ok || l.revision <= 0 || l.revision == math.MaxInt64 {
		return keys, nil
	}
	var keys []string
	err := readPages(d.keys.prefixRange(l.prefix), func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := d.readAt(ctx, l.revision, begin, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithKeysOnly())
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
		return nil, nil // nothing can have vanished since
	case err == nil:
		d.leasedKeys.put(l, keys)
	}
	return keys, err
}
