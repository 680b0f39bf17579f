package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// errBundleFailed is etcd's error if a bundle's conditions do not all hold (splitBundles).
var errBundleFailed = rpctypes.ErrFutureRev

// Commit does as store.Store says. It waits up to 30 seconds for a member to
// connect to, having sent nothing; then up to ten for the answer. An error of
// etcd's after that, a connection that broke, and a context that ended leave it
// open whether it was written: a member that stood still may still do it.
func (d *db) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}
	r, err := d.compile(ctx, txn)
	if err != nil {
		return 0, err
	}
	if err := d.waitReady(ctx); err != nil {
		return 0, err
	}
	return d.commitRequest(ctx, r)
}

// commitRequest must not be repeated: the first may have been done.
func (d *db) commitRequest(ctx context.Context, r request) (int64, error) {
	var resp *clientv3.TxnResponse
	err := d.retryUnknownToken(ctx, func() (err error) {
		bound, cancel := d.bindContext(ctx, commitTimeout)
		defer cancel()
		before := d.history.lastSeen()
		resp, err = d.client.Txn(bound).
			If(append(r.conds, d.markerUnchanged())...).
			Then(r.ops...).
			Else(clientv3.OpGet(d.keys.markerKey(), clientv3.WithKeysOnly())).
			Commit()
		if err == nil {
			d.observeResponse(before, resp.Header)
		}
		return err
	})
	switch {
	case errors.Is(err, errBundleFailed):
		return 0, store.ErrConflict
	case err != nil:
		return 0, d.storeError(ctx, err)
	case resp.Succeeded:
		return resp.Header.Revision, nil
	}
	found := resp.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 || found[0].CreateRevision != d.marker {
		return 0, d.MarkGone()
	}
	return 0, store.ErrConflict
}
