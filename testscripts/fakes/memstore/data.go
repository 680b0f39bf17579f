package memstore

import (
	"maps"
	"slices"
	"sync"

	"bijou/state/store"
)

// data is shared by all handles.
type data struct {
	mu       sync.Mutex
	revision int64
	keys     []string             // every key ever put, sorted
	history  map[string][]version // the versions of each key, oldest first
	log      []store.Batch        // commits after trimmed, oldest first
	trimmed  int64
	leases   map[store.LeaseID]*lease // the leases that have not ended
	lastID   store.LeaseID
	changed  chan struct{}    // closed and replaced by each commit
	lost     func(key string) // of KeepFuture; if nil, records are stored as they are written
}

// version is the value of one key after one commit.
type version struct {
	revision int64
	value    []byte
	deleted  bool
	lease    store.LeaseID
}

func newData() *data {
	return &data{
		history: map[string][]version{},
		leases:  map[store.LeaseID]*lease{},
		changed: make(chan struct{}),
	}
}

func (d *data) commit(txn store.Txn) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range txn.Conds {
		if !d.condHolds(c) {
			return 0, store.ErrConflict
		}
	}
	for _, o := range txn.Ops {
		if o.Lease != 0 && !o.Delete && d.leases[o.Lease] == nil {
			return 0, store.ErrLeaseLost
		}
	}
	d.addFuture(txn.Ops)
	d.apply(txn.Ops)
	return d.revision, nil
}

func (d *data) condHolds(c store.Cond) bool {
	if c.Key != "" {
		v, _ := d.versionAt(c.Key, d.revision)
		return v.revision == c.Revision
	}
	if c.Revision < d.trimmed {
		return false
	}
	return !slices.ContainsFunc(d.logSince(c.Revision), func(b store.Batch) bool {
		return len(filterEvents(b.Events, store.Below(c.Prefix))) > 0
	})
}

// apply writes the operations as one revision if they change anything.
func (d *data) apply(ops []store.Op) {
	next := d.revision + 1
	batch := store.Batch{Revision: next}
	for _, o := range ops {
		if _, ok := d.versionAt(o.Key, d.revision); o.Delete && !ok {
			continue
		}
		d.putVersion(o.Key, version{next, slices.Clone(o.Value), o.Delete, o.Lease})
		d.revision = next
		if !o.Quiet {
			batch.Events = append(batch.Events, store.Event{Key: o.Key, Deleted: o.Delete, Value: eventValue(o)})
		}
	}
	if d.revision == next {
		d.log = append(d.log, batch)
		close(d.changed)
		d.changed = make(chan struct{})
	}
}

func eventValue(o store.Op) []byte {
	if o.Delete {
		return nil
	}
	return slices.Clone(o.Value)
}

func (d *data) putVersion(key string, v version) {
	if i, found := slices.BinarySearch(d.keys, key); !found {
		d.keys = slices.Insert(d.keys, i, key)
	}
	d.history[key] = append(d.history[key], v)
}

// versionAt returns the key's version at the revision. It returns false if the key was absent.
func (d *data) versionAt(key string, revision int64) (version, bool) {
	for _, v := range slices.Backward(d.history[key]) {
		if v.revision > revision {
			continue
		}
		if v.deleted {
			break
		}
		return v, true
	}
	return version{}, false
}

// logSince returns the part of the log after the revision. The caller must have checked that this part was
// not trimmed.
func (d *data) logSince(revision int64) []store.Batch {
	i := len(d.log)
	for i > 0 && d.log[i-1].Revision > revision {
		i--
	}
	return d.log[i:]
}

func (d *data) leaseKeys(id store.LeaseID) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(d.history)) {
		if v, ok := d.versionAt(key, d.revision); ok && v.lease == id {
			keys = append(keys, key)
		}
	}
	return keys
}

func filterEvents(events []store.Event, scope store.Scope) []store.Event {
	var out []store.Event
	for _, e := range events {
		if scope.Has(e.Key) {
			out = append(out, e)
		}
	}
	return out
}
