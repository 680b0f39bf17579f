// Package gateway serves a store to processes that cannot open the store themselves. Each identity has its own
// socket and its own rights.
//
// A process that can open a socket has the socket's identity. An Access decides about each request at the
// revision that the request reads. Everything that the Access reads becomes a condition of the request's
// writes. The gateway itself keeps no state. To its clients, a restart of the gateway looks like an outage of
// the store, and their leases survive the restart.
//
// The gateway handles keys, but not entities. Its client is state/store/remote.
//
// The files are: access.go (the interface of an Access), table.go (the Access by package access), endpoint.go
// (a socket), view.go (the snapshot of a request), and one file for each kind of request: read.go, commit.go,
// watch.go, lease.go and secret.go.
package gateway

import (
	"errors"

	"bijou/state/secret"
	"bijou/state/store"
)

// Gateway serves a store. Its methods are safe for concurrent use.
type Gateway struct {
	store  store.Store
	leases store.LeaseGranter
	access Access

	secrets secret.Keeper // nil if the gateway does not seal and open secrets
}

// New returns a gateway to the store, which must be a store.LeaseGranter. The store must stay open until all
// endpoints are closed.
func New(s store.Store, access Access) (*Gateway, error) {
	leases, ok := s.(store.LeaseGranter)
	if !ok {
		return nil, errors.New("internal error: the store does not grant leases for other processes")
	}
	return &Gateway{store: s, leases: leases, access: access}, nil
}
