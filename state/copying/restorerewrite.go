package copying

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/backupfile"
	"bijou/state/carry"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// rewriteKeys returns all keys that a store must hold after the restoration, sorted: the backup's keys with
// changed values, and the marks of its units. there are the keys that the store has before. If they are replaced,
// counters and claims do not fall behind theirs.
func (r Restoration) rewriteKeys(from *backupSource, there []keyspace.KeyValue) (all []keyspace.KeyValue, err error) {
	w := &rewriter{Restoration: r, from: from, unitsAnew: map[string]bool{}}
	if err := w.sortUnits(); err != nil {
		return nil, err
	}

	for _, kv := range from.keys {
		isRaised := r.Replace && isCounterKey(kv.Key) // added below
		if isClaimKey(kv.Key) || isRaised || !w.keepsKey(kv.Key) {
			continue
		}
		if kv.Value, err = w.rewriteValue(kv, there); err != nil {
			return nil, err
		}
		all = append(all, kv)
	}

	all = append(all, w.marks...)
	if r.Replace {
		ids, err := raiseCounters(from.keys, there)
		if err != nil {
			return nil, err
		}
		claims, err := raiseClaims(from.keys, there)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, ids, claims)
	}

	slices.SortFunc(all, func(a, b keyspace.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return all, nil
}

// rewriter changes the keys of a backup to those of the restored environment.
type rewriter struct {
	Restoration
	from      *backupSource
	unitsAnew map[string]bool     // the units that begin from nothing, since the backup has no directory of theirs
	marks     []keyspace.KeyValue // the keys by which agents learn that their unit was restored
}

// sortUnits finds the units that begin from nothing, as the backup has no directory of theirs. With Replace
// there are none. It marks all other units, so that their agents compare the directory with the records
// before they go on. With Adopt it marks only those with storage, whose agents look for its directories.
func (w *rewriter) sortUnits() error {
	for _, kv := range w.from.keys {
		unit, rest, ok := cutUnit(kv.Key, keys.Units)
		if !ok || rest != "" {
			continue
		}
		u, err := keyspace.Decode[state.Unit](kv)
		if errors.Is(err, keyspace.ErrDamaged) {
			continue // it is restored as it is: whoever reads it then says so
		}
		if err != nil {
			return err
		}

		folder := backupfile.FolderName(u.Machine, strings.ReplaceAll(unit, "/", "-"))
		if !w.Replace && !w.from.archive.Has(folder) {
			w.unitsAnew[unit] = true
			continue
		}

		_, hasStorage := findKey(w.from.keys, keys.UnitStorage(unit))
		if w.Adopt && !hasStorage {
			continue
		}
		value, err := keyspace.Encode(kv.Key, state.Restored{Backup: w.from.header.Time, Adopted: w.Adopt})
		if err != nil {
			return err
		}
		w.marks = append(w.marks, keyspace.KeyValue{Key: keys.Restored(unit), Value: value})
	}

	return nil
}

// keepsKey reports whether a key is restored. A unit that begins from nothing loses its records of its
// former host: its progress, the notes of its charm, and its membership in relations until it enters them
// again.
func (w *rewriter) keepsKey(key string) bool {
	if unit, _, ok := cutUnit(key, keys.Uniters); ok {
		return !w.unitsAnew[unit]
	}
	if unit, rest, ok := cutUnit(key, keys.Units); ok {
		own := rest == "ports" || rest == "state" || rest == "debug"
		return rest != "restored" && !(w.unitsAnew[unit] && own)
	}
	if parts := strings.SplitN(key, "/", 4); len(parts) == 4 && parts[0]+"/" == keys.Relations &&
		parts[2] == "members" {
		return !w.unitsAnew[parts[3]]
	}

	return w.Replace || key != keys.Provisioner
}

// rewriteValue returns the value of a restored key. Machines lose their instances unless the environment is
// replaced, and units that begin from nothing lose the status of their former life.
func (w *rewriter) rewriteValue(kv keyspace.KeyValue, there []keyspace.KeyValue) ([]byte, error) {
	if kv.Key == keys.Environment {
		return w.rewriteEnvironment(kv, there)
	}
	if id, ok := strings.CutPrefix(kv.Key, keys.Machines); ok && !w.Replace && !strings.Contains(id, "/") {
		return rewriteRecord(kv, func(m *state.Machine) { holdWithoutInstance(id, m) })
	}
	if unit, rest, ok := cutUnit(kv.Key, keys.Units); ok && rest == "" && w.unitsAnew[unit] {
		return rewriteRecord(kv, func(u *state.Unit) {
			u.Charm = ""
			u.Status = state.WorkloadStatus{}
			u.Workload = state.WorkloadVersion{}
			u.ActiveWith = ""
			u.Resolved = state.Unresolved
			u.ResolvedRelations = nil
		})
	}

	return kv.Value, nil
}

// rewriteRecord leaves a record as it is that does not decode.
func rewriteRecord[T any](kv keyspace.KeyValue, f func(doc *T)) ([]byte, error) {
	doc, err := keyspace.Decode[T](kv)
	if errors.Is(err, keyspace.ErrDamaged) {
		return kv.Value, nil
	}
	if err != nil {
		return nil, err
	}

	f(&doc)
	value, err := keyspace.Encode(kv.Key, doc)
	if err != nil {
		return nil, err
	}

	return carry.Over(kv.Value, value, doc), nil
}

// rewriteEnvironment returns the environment's record as it is restored. In a replaced environment no
// instances are harvested, since nobody knows which were started after the backup.
func (w *rewriter) rewriteEnvironment(kv keyspace.KeyValue, there []keyspace.KeyValue) ([]byte, error) {
	before := state.Environment{}
	if old, ok := findKey(there, keys.Environment); ok {
		var err error
		if before, err = keyspace.Decode[state.Environment](old); err != nil {
			return nil, err
		}
	}

	return rewriteRecord(kv, func(e *state.Environment) {
		e.Restored = w.from.String()
		if w.Replace {
			e.Incarnation = max(e.Incarnation, before.Incarnation) + 1
			if e.Config == nil {
				e.Config = map[string]string{}
			}
			e.Config[state.HarvestMode] = string(state.HarvestNone)
		} else {
			e.Incarnation = 0
		}

		if w.Change != nil {
			w.Change(e)
		}
	})
}

// holdWithoutInstance resets a machine's record to one without an instance, which waits for the operator.
// Machine 0 is this host, and begins by itself.
func holdWithoutInstance(id string, m *state.Machine) {
	m.Addresses = state.Addresses{}
	m.Tools = ""
	if id == "0" { // this host
		m.Status = state.MachinePending
		m.Message = ""
		return
	}

	why := fmt.Sprintf("restored: its instance is the old model's; juju resolved %s starts another", id)
	m.InstanceID = ""
	m.Status = state.MachineError
	m.Message = why
	m.Attempts = 0
	m.RetryAt = time.Time{}
}

func isClaimKey(key string) bool { return strings.HasPrefix(key, keys.Claims) }

// raiseClaims returns for each machine a claim that nobody holds, with an epoch above all that agents can
// have. These are the epochs of the backup and of the store. If the store is lost, nobody knows the latest
// ones, so that the epoch is also above the present Unix time: no claim changes more than once a second.
func raiseClaims(backup, there []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	epochs := map[string]int64{}
	for _, kv := range slices.Concat(backup, there) {
		id, ok := strings.CutPrefix(kv.Key, keys.Machines)
		switch {
		case ok && !strings.Contains(id, "/"):
			key := keys.Claim(state.MachineAgent(id))
			epochs[key] = max(epochs[key], time.Now().Unix())
		case isClaimKey(kv.Key):
			c, err := keyspace.Decode[keyspace.ClaimRecord](kv)
			if errors.Is(err, keyspace.ErrDamaged) {
				continue // the machine's own record has it raised
			}
			if err != nil {
				return nil, err
			}
			epochs[kv.Key] = max(epochs[kv.Key], c.Epoch, time.Now().Unix())
		}
	}

	return encodeAll(epochs, func(n int64) any { return keyspace.ClaimRecord{Epoch: n + 1} })
}

func isCounterKey(key string) bool { return strings.HasPrefix(key, keys.Counters) }

// skippedIDs are passed over where nobody knows how many ids were given since the backup
// was made: none is ever given twice.
const skippedIDs = 100

// raiseCounters returns the counters of backup and store, each at the higher number. If the store has no
// counter, it skips numbers that may have been used since the backup.
func raiseCounters(backup, there []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	next := map[string]int{}
	for i, kvs := range [][]keyspace.KeyValue{backup, there} {
		for _, kv := range kvs {
			if !isCounterKey(kv.Key) {
				continue
			}
			n, err := keyspace.Decode[int](kv)
			if err != nil {
				return nil, err
			}

			if _, known := findKey(there, kv.Key); i == 0 && !known {
				n += skippedIDs
			}
			next[kv.Key] = max(next[kv.Key], n)
		}
	}

	return encodeAll(next, func(n int) any { return n })
}

// encodeAll returns the entries of the documents by key.
func encodeAll[T any](docs map[string]T, doc func(T) any) (all []keyspace.KeyValue, err error) {
	for key, d := range docs {
		kv := keyspace.KeyValue{Key: key}
		if kv.Value, err = keyspace.Encode(key, doc(d)); err != nil {
			return nil, err
		}
		all = append(all, kv)
	}

	return all, nil
}
