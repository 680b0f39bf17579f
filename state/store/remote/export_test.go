package remote

import "bijou/state/store"

// Kill stops s as kill -9 would stop its process: its leases are no longer refreshed or revoked.
func Kill(s store.Store) { s.(*db).AbandonLeases() }

// Socket returns the path of the gateway's socket.
func Socket(s store.Store) string { return s.(*db).socket }
