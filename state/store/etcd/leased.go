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

// listing is a prefix at a revision: what is there never changes, within an epoch.
type listing struct {
	prefix   string
	revision int64
	epoch    int
}

// listing is one of the present epoch.
func (d *db) listing(prefix string, revision int64) listing {
	return listing{prefix, revision, d.history.lastSeen().epoch}
}

// leasedCache remembers of the newest listings which of their keys stood under
// a lease. A transaction is mostly conditional on what was just listed.
type leasedCache struct {
	mu    sync.Mutex
	keys  map[listing][]string // by etcd's keys
	order []listing            // oldest first
}

const maxListings = 256

func newLeasedCache() *leasedCache { return &leasedCache{keys: map[listing][]string{}} }

func (c *leasedCache) remember(l listing, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.keys[l]; ok {
		return
	}
	if len(c.order) == maxListings {
		delete(c.keys, c.order[0])
		c.order = c.order[1:]
	}
	c.keys[l] = keys
	c.order = append(c.order, l)
}

func (c *leasedCache) recall(l listing) (keys []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, ok = c.keys[l]
	return keys, ok
}

// leasedIn is etcd's keys that stood under a lease in the listing. ErrConflict:
// nobody can tell any more.
func (d *db) leasedIn(ctx context.Context, l listing) ([]string, error) {
	if keys, ok := d.leased.recall(l); ok || l.revision <= 0 || l.revision == math.MaxInt64 {
		return keys, nil
	}
	var keys []string
	err := pages(d.space.below(l.prefix), func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
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
	case errors.Is(err, store.ErrCompacted):
		return nil, store.ErrConflict
	case errors.Is(err, rpctypes.ErrFutureRev):
		return nil, nil // nothing can have vanished since
	case err == nil:
		d.leased.remember(l, keys)
	}
	return keys, err
}
