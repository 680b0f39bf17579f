package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// Lease grants a lease of etcd's, which counts in whole seconds and may keep it a
// little longer than ttl; Done keeps to ttl.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	if err := d.waitReady(ctx); err != nil {
		return nil, err
	}
	ttl = max(ttl, time.Second)
	var requested time.Time
	var resp *clientv3.LeaseGrantResponse
	err := d.retryUnknownToken(ctx, func() (err error) {
		requested = time.Now()
		bound, cancel := d.bindContext(ctx, commitTimeout)
		defer cancel()
		resp, err = d.client.Grant(bound, int64((ttl+time.Second-1)/time.Second))
		return err
	})
	if err != nil {
		return nil, d.storeError(ctx, err)
	}
	return d.KeepLease(opener.GrantedLease{
		ID: store.LeaseID(resp.ID), TTL: ttl, RequestedAt: requested,
		Refresh: func(ctx context.Context) (bool, error) { return d.refreshLease(ctx, resp.ID, ttl/4) },
		Revoke:  func(ctx context.Context) error { return d.revokeLease(ctx, resp.ID) },
	})
}

func (d *db) revokeLease(ctx context.Context, id clientv3.LeaseID) error {
	return d.retry(ctx, func(ctx context.Context) error {
		_, err := d.client.Revoke(ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
}

// refreshLease asks one member once: the next time another may answer.
func (d *db) refreshLease(ctx context.Context, id clientv3.LeaseID, limit time.Duration) (lives bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
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
	return err == nil && resp.TTL > 0, err
}
