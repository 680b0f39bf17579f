package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// errBundleFailed is etcd's error if a condition of a bundle does not hold; see splitBundles.
var errBundleFailed = rpctypes.ErrFutureRev

// Commit commits a transaction, as store.Store promises. If the leased keys for prefix conditions are
// not cached, it first reads them. It waits up to 30 seconds for a connection to a member, and up to ten seconds for
// the answer. If there is no answer, because the connection breaks or ctx ends, the caller cannot know whether the
// transaction was written. A member that hangs can still commit it later.
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

// commitRequest sends the request to etcd, with the additional condition that the store is still the one that
// was opened. It returns the revision of the commit. It returns ErrConflict if a condition does not hold, and
// ErrStoreGone if the store was removed. If etcd does not answer, the caller must not send the request again, since
// etcd may have committed it.
func (d *db) commitRequest(ctx context.Context, r request) (int64, error) {
	var resp *clientv3.TxnResponse

	err := d.retryUnknownToken(ctx, func() (err error) {
		bound, cancel := d.Bound(ctx, commitTimeout)
		defer cancel()
		before := d.history.lastSeen()

		resp, err = d.client.Txn(bound).
			If(append(r.conds, d.markerUnchanged())...).
			Then(r.ops...).
			Else(clientv3.OpGet(d.keys.markerKey(), clientv3.WithKeysOnly())).
			Commit()
		if err != nil {
			return err
		}

		// If etcd's history was replaced, this ends all watchers and leases.
		d.observeResponse(before, resp.Header)
		return nil
	})

	switch {
	case errors.Is(err, errBundleFailed):
		return 0, store.ErrConflict
	case err != nil:
		return 0, d.storeError(ctx, err)
	case resp.Succeeded:
		return resp.Header.Revision, nil
	}

	// A condition does not hold, and Else has read the marker. If the marker has changed, the store was removed,
	// and perhaps created again.
	marker := resp.Responses[0].GetResponseRange().Kvs
	if len(marker) == 0 || marker[0].CreateRevision != d.marker {
		return 0, d.MarkGone()
	}

	return 0, store.ErrConflict
}

// By default etcd allows 128 comparisons or operations on each path from a transaction's root to its leaves.
// The operations of a nested transaction count together with those of its parents, but not with those of its
// siblings. This package uses three levels: the root, a bundle, and a deletion with its tombstone.
const (
	maxRootOps   = 96
	maxBundleOps = 28 // leaves 4 of the 128 for a deletion, which needs 2
)

// request is a transaction of etcd, without the condition on the marker.
type request struct {
	conds []clientv3.Cmp
	ops   []clientv3.Op
}

// compile returns the transaction as a request to etcd. For each condition on a prefix it needs the keys below the
// prefix that were under a lease at the condition's revision. If they are not cached, it reads them from etcd, and
// returns ErrConflict if etcd no longer has that revision. It returns ErrTooLarge if the request does not fit into a
// transaction of etcd.
func (d *db) compile(ctx context.Context, txn store.Txn) (request, error) {
	var r request
	for _, c := range txn.Conds {
		if c.Key != "" {
			r.conds = append(r.conds,
				clientv3.Compare(clientv3.ModRevision(d.keys.encodeKey(c.Key)), "=", c.Revision))
			continue
		}

		listing := d.currentListing(handle.Span{Text: c.Prefix, Prefix: true}, c.Revision)
		leased, err := d.listLeased(ctx, listing)
		if err != nil {
			return request{}, err
		}
		// prefixUnchanged adds 1 to the revision, which must not overflow.
		revision := min(c.Revision, math.MaxInt64-1)
		r.conds = append(r.conds, d.prefixUnchanged(c.Prefix, revision, leased)...)
	}

	for _, o := range txn.Ops {
		r.ops = append(r.ops, d.compileOp(o)...)
	}
	return r.splitBundles(d.keys)
}

// prefixUnchanged returns comparisons that hold only if no key below the prefix was put or deleted after the
// revision. leased are the keys below the prefix that were under a lease at that revision.
func (d *db) prefixUnchanged(prefix string, revision int64, leased []string) []clientv3.Cmp {
	keys, tombstones := d.keys.prefixRange(prefix), d.keys.tombstoneRange(prefix)
	return append(d.tombstonesComplete(revision, leased),
		clientv3.Compare(clientv3.ModRevision(keys.begin).WithRange(keys.end), "<", revision+1),
		clientv3.Compare(clientv3.ModRevision(tombstones.begin).WithRange(tombstones.end), "<", revision+1))
}

// tombstonesComplete returns comparisons that hold only if each key that was deleted after the revision still
// has a tombstone. leased are etcd's keys that were under a lease at the revision. All of them must still
// exist.
func (d *db) tombstonesComplete(revision int64, leased []string) []clientv3.Cmp {
	// No tombstone that was written after the revision was swept.
	cmps := []clientv3.Cmp{clientv3.Compare(clientv3.Value(d.keys.sweptKey()), "<", sweptValue(revision+1))}

	// A key whose lease has ended vanishes without a tombstone.
	for _, key := range leased {
		cmps = append(cmps, clientv3.Compare(clientv3.Version(key), ">", 0))
	}

	return cmps
}

// compileOp returns the operation as operations of etcd. Deleting a key also writes a tombstone, unless the key is
// absent or the operation is quiet. Putting a key under a lease also writes one, since the key can vanish without a
// transaction.
func (d *db) compileOp(o store.Op) []clientv3.Op {
	key := d.keys.encodeKey(o.Key)
	tombstone := clientv3.OpPut(d.keys.tombstoneKey(o.Key), "")
	switch {
	case o.Delete && o.Quiet:
		return []clientv3.Op{clientv3.OpDelete(key)}
	case o.Delete:
		// Deleting an absent key must not look like a change.
		exists := clientv3.Compare(clientv3.Version(key), ">", 0)
		deletion := []clientv3.Op{clientv3.OpDelete(key), tombstone}
		return []clientv3.Op{clientv3.OpTxn([]clientv3.Cmp{exists}, deletion, nil)}
	case o.Lease != 0:
		lease := clientv3.WithLease(clientv3.LeaseID(o.Lease))
		return []clientv3.Op{clientv3.OpPut(key, string(o.Value), lease), tombstone}
	}

	return []clientv3.Op{clientv3.OpPut(key, string(o.Value))}
}

// splitBundles moves the conditions that do not fit into the root transaction into bundles, which are nested
// transactions. If the operations do not fit beside these bundles, it moves all of them into further bundles. If a
// condition of a bundle does not hold, the bundle does a read that etcd refuses with errBundleFailed. etcd then
// refuses the whole request before it has written anything. splitBundles returns ErrTooLarge if there are too many
// bundles for the root transaction.
func (r request) splitBundles(keys keyCodec) (request, error) {
	const maxRootConds = maxRootOps - 1 // commitRequest adds the comparison of the marker
	var bundles []clientv3.Op
	if len(r.conds) > maxRootConds {
		refusedRead := []clientv3.Op{clientv3.OpGet(keys.markerKey(), clientv3.WithRev(math.MaxInt64))}
		for conds := range slices.Chunk(r.conds[maxRootConds:], maxBundleOps) {
			bundles = append(bundles, clientv3.OpTxn(conds, nil, refusedRead))
		}
		r.conds = r.conds[:maxRootConds]
	}

	if len(bundles)+len(r.ops) <= maxRootOps {
		r.ops = append(bundles, r.ops...)
		return r, nil
	}

	for ops := range slices.Chunk(r.ops, maxBundleOps) {
		bundles = append(bundles, clientv3.OpTxn(nil, ops, nil))
	}
	r.ops = bundles
	// Within the limits of store.Txn.Check, only leased keys can need so many bundles.
	if len(bundles) > maxRootOps {
		return request{}, fmt.Errorf(
			"%w: too many keys have leases below the prefixes in its conditions",
			store.ErrTooLarge,
		)
	}

	return r, nil
}
