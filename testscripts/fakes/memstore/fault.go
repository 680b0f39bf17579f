package memstore

import (
	"time"

	"bijou/state/store"
)

// Compact trims the history of s up to and including the revision. It panics unless this package made s.
func Compact(s store.Store, revision int64) {
	d := s.(*handle).d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trimmed = max(d.trimmed, min(revision, d.revision))
	d.log = d.logSince(d.trimmed)
}

// Expire ends one lease of s, as an outage longer than the lease's TTL would. It panics unless this package
// made s.
func Expire(s store.Store, id store.LeaseID) {
	s.(*handle).d.revokeLease(id)
}

// Abandon ends s as kill -9 would end the process of s. The leases of s are not revoked, but expire after
// their TTLs. It panics unless this package made s.
func Abandon(s store.Store) {
	o := s.(*handle)
	o.mu.Lock()
	orphans := o.leases
	o.leases = map[store.LeaseID]*lease{}
	o.mu.Unlock()
	o.Close()
	for id, l := range orphans {
		time.AfterFunc(l.ttl, func() { o.d.revokeLease(id) })
	}
}
