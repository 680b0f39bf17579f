package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// healthTimeout bounds the answer of one endpoint.
const healthTimeout = 2 * time.Second

func (d *db) queryStatus(ctx context.Context, endpoints []string) ([]*clientv3.StatusResponse, []error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	said, errs := make([]*clientv3.StatusResponse, len(endpoints)), make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() { said[i], errs[i] = d.client.Status(ctx, endpoint) })
	}
	asking.Wait()
	return said, errs
}

// Health asks each endpoint by itself, and returns its state in words, or why it does not
// answer.
func (d *db) Health(ctx context.Context) map[string]string {
	all := map[string]string{}
	said, errs := d.queryStatus(ctx, d.config.endpoints)
	for i, s := range said {
		switch endpoint := d.config.endpoints[i]; {
		case errs[i] != nil:
			all[endpoint] = "does not answer: " + errs[i].Error()
		case s.Leader == 0:
			all[endpoint] = fmt.Sprintf("etcd %s sees no leader: it is cut off, or too few members live", s.Version)
		case s.Leader == s.Header.MemberId:
			all[endpoint] = fmt.Sprintf("etcd %s, leads, %d MiB", s.Version, s.DbSize>>20)
		default:
			all[endpoint] = fmt.Sprintf("etcd %s, follows, %d MiB", s.Version, s.DbSize>>20)
		}
	}
	return all
}
