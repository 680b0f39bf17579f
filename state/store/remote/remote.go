// Package remote is the store for a process that uses another store through a gateway (package
// state/gateway). The gateway allows only the operations to which the process has a right.
//
// The gateway identifies the process by the socket that the process uses, so package remote sends no name or
// password. An outage of the gateway usually causes only delays: reads are repeated, watchers continue where
// they left off, and leases continue if the gateway is back within their TTL. But a snapshot that has begun
// before the outage returns ErrHistoryLost.
//
// dial.go has the connection, errors and retries. remote.go has commits and leases.
package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"bijou/state/store"
	"bijou/state/store/handle"
	"bijou/state/store/remote/protocol"
)

// db is one process's handle of a store.
type db struct {
	*handle.Opener
	socket string
	conn   *grpc.ClientConn
	client protocol.StoreClient

	seen atomic.Int64 // the newest revision that the gateway has reported
}

// openTimeout limits Open, in addition to its context.
const openTimeout = 10 * time.Second

// Open opens the store that the gateway at the URL serves, as in bijou+unix:///run/bijou/socket. If the gateway
// does not answer, it returns ErrAway within ten seconds, or at the context's deadline if that is sooner.
func Open(ctx context.Context, url string) (store.Store, error) {
	socket, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %q: %w", url, err)
	}

	return d, nil
}

// open connects to a gateway, and checks that it answers.
func open(ctx context.Context, socket string) (*db, error) {
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}

	d := &db{Opener: handle.New(), socket: socket, conn: conn, client: protocol.NewStoreClient(conn)}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()

	s := &snapshot{d: d}
	defer s.Close()
	if _, err := s.Revision(ctx); err != nil {
		d.Close()
		return nil, err
	}

	return d, nil
}

// Commit sends the transaction only once, since the gateway may have written it even if no answer arrives. See
// [store.Store] for the errors after which nothing was written.
func (d *db) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}

	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	before := d.seen.Load()
	response, err := d.client.Commit(bound, protocol.FromTxn(txn))
	if err != nil {
		return 0, d.storeError(ctx, err)
	}

	revision := response.GetRevision()
	if d.observe(before, revision) == nil {
		return revision, nil
	}

	// The transaction was written, but the gateway seems to serve an older copy of the store. Read to check
	// this: if the gateway does serve an older copy, the read marks the store as gone.
	s := &snapshot{d: d}
	defer s.Close()
	_, err = s.Revision(ctx)
	return revision, err
}

// errOlder is returned if an answer's revision is older than the newest revision that was known before the
// call. One such answer does not prove that the store was replaced; see retry.
var errOlder = errors.New("the gateway serves an older copy of the store")

// observe records the revision of an answer. before is the newest revision that was known before the request was
// sent. If the answer's revision is below before, observe records nothing and returns an error that wraps errOlder.
func (d *db) observe(before, revision int64) error {
	if revision < before {
		return fmt.Errorf("%w, at revision %d after %d", errOlder, revision, before)
	}

	d.raise(revision)
	return nil
}

// markReplaced marks the store as gone after the gateway has served an older copy twice, and returns the
// error of the store's later calls. The data that this process has read may not be in the older copy.
func (d *db) markReplaced(older error) error {
	return d.MarkGoneBecause(fmt.Errorf("%w: the gateway at %s: %w", store.ErrStoreGone, d.socket, older))
}

// raise records the revision if it is newer than the newest known revision.
func (d *db) raise(revision int64) {
	for {
		known := d.seen.Load()
		if revision <= known || d.seen.CompareAndSwap(known, revision) {
			return
		}
	}
}

// Lease grants a lease that the gateway holds, and this process refreshes. It returns ErrLeaseLost if the lease ends
// during the call.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}

	ttl = max(ttl, time.Millisecond)
	bound, cancel := d.Bound(ctx, callTimeout)
	defer cancel()

	requested := time.Now()
	granted, err := d.client.Grant(bound, &protocol.GrantRequest{TtlMilliseconds: ttl.Milliseconds()})
	if err != nil {
		return nil, d.storeError(ctx, err)
	}

	id := store.LeaseID(granted.GetLease())
	// After a long wait for the answer, the lease would soon expire. The refresh starts its TTL again.
	if time.Since(requested) > ttl/3 {
		requested = time.Now()
		lives, err := d.refreshLease(ctx, id, callTimeout)
		if err != nil {
			return nil, d.storeError(ctx, err)
		}
		if !lives {
			return nil, store.ErrLeaseLost
		}
	}

	return d.KeepLease(handle.GrantedLease{
		ID:          id,
		TTL:         ttl,
		RequestedAt: requested,
		Refresh:     func(ctx context.Context) (bool, error) { return d.refreshLease(ctx, id, ttl/4) },
		Revoke:      func(ctx context.Context) error { return d.revokeLease(ctx, id) },
	})
}

// refreshLease sends one request to refresh the lease. It returns lives false if the lease was lost.
func (d *db) refreshLease(ctx context.Context, id store.LeaseID, limit time.Duration) (lives bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := d.client.Refresh(ctx, &protocol.RefreshRequest{Lease: int64(id)})
	return response.GetLives(), err
}

// revokeLease ends the lease. It repeats the request until the gateway answers.
func (d *db) revokeLease(ctx context.Context, id store.LeaseID) error {
	return d.retry(ctx, func(ctx context.Context) error {
		_, err := d.client.Revoke(ctx, &protocol.RevokeRequest{Lease: int64(id)})
		return err
	})
}

// Close revokes this process's leases, ends its watches, and closes the connection.
func (d *db) Close() error {
	d.Opener.Close(func() { d.conn.Close() })
	return nil
}
