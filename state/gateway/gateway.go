// Package gateway serves a store to processes that have none, each at a socket of its own, and
// lets each do what it has a right to.
//
// The socket is the identity: whoever can open it is the one that it was made for. Who may do what
// is decided by an Access, at the revision that a request reads; what that was decided by becomes a
// condition of what a request writes. The gateway itself keeps nothing: a restart is an outage of
// the store to its clients, whose leases go on.
//
// It knows keys only, no entities. The client is state/store/remote.
//
// How it works, file by file: access (what an Access is asked), endpoint (one socket), view (what an
// Access reads), and what is asked for: read, commit, watch, lease and secret.
package gateway

import (
	"errors"

	"bijou/state/secret"
	"bijou/state/store"
)

// Gateway is a store that is served. Its methods may be called from several goroutines.
type Gateway struct {
	store  store.Store
	leases store.LeaseGranter
	access Access

	secrets secret.Keeper // nil: it seals and opens none
}

// New returns a gateway before the store, which must be a store.LeaseGranter. Both outlive all
// endpoints.
func New(s store.Store, access Access) (*Gateway, error) {
	leases, ok := s.(store.LeaseGranter)
	if !ok {
		return nil, errors.New("internal error: the store grants no leases for other processes")
	}
	return &Gateway{store: s, leases: leases, access: access}, nil
}
