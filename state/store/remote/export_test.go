package remote

import "bijou/state/store"

// Kill stops s as kill -9 would stop its process: its leases are neither
// refreshed nor revoked any more.
func Kill(s store.Store) { s.(*db).AbandonLeases() }

// Socket is where the gateway of s is.
func Socket(s store.Store) string { return s.(*db).socket }
