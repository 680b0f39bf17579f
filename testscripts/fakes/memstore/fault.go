package memstore

import (
	"time"

	"bijou/state/store"
)

// Compact trims the history of s, which this package made, up to and including the revision.
func Compact(s store.Store, revision int64) {
	d := s.(*handle).d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trimmed = max(d.trimmed, min(revision, d.revision))
	d.log = d.logSince(d.trimmed)
}

// Expire ends one lease of s, which this package made, as an outage that is longer than its TTL would.
func Expire(s store.Store, id store.LeaseID) {
	s.(*handle).d.revokeLease(id)
}

// Abandon ends s, which this package made, as kill -9 would end its process: its leases are not
// revoked, but expire after their TTLs.
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
