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

// rewriteKeys returns all keys that the store must have after the restoration, sorted: the keys of the backup
// that stay, some with changed values, and the keys that mark units as restored. existing are the keys that the
// store has now. With Replace, no counter and no claim's epoch becomes lower than in the store.
func (r Restoration) rewriteKeys(from *backupSource, existing []keyspace.KeyValue) (restored []keyspace.KeyValue, err error) {
	w := &rewriter{Restoration: r, from: from, freshUnits: map[string]bool{}}
	if err := w.classifyUnits(); err != nil {
		return nil, err
	}

	for _, kv := range from.keys {
		// With Replace, raiseCounters and raiseClaims add counters and claims below. A new environment has no
		// claims.
		isRaisedCounter := r.Replace && isCounterKey(kv.Key)
		if isClaimKey(kv.Key) || isRaisedCounter || !w.keepsKey(kv.Key) {
			continue
		}
		if kv.Value, err = w.rewriteValue(kv, existing); err != nil {
			return nil, err
		}
		restored = append(restored, kv)
	}

	restored = append(restored, w.marks...)
	if r.Replace {
		counters, err := raiseCounters(from.keys, existing)
		if err != nil {
			return nil, err
		}
		claims, err := raiseClaims(from.keys, existing)
		if err != nil {
			return nil, err
		}
		restored = slices.Concat(restored, counters, claims)
	}

	slices.SortFunc(restored, func(a, b keyspace.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return restored, nil
}

// rewriter changes the keys of a backup to those of the restored environment.
type rewriter struct {
	Restoration
	from       *backupSource
	freshUnits map[string]bool     // the units that begin without their former state; see classifyUnits
	marks      []keyspace.KeyValue // the keys that tell agents that their unit was restored
}

// classifyUnits sets freshUnits and marks. The fresh units are those whose directories the backup does not
// have: they begin like new units. With Replace there are no fresh units. classifyUnits marks all other
// units, so that their agents compare the directory with the records before they continue. With Adopt it
// marks only units with storage, whose agents check that the storage's directories exist. A unit whose record
// is damaged is neither fresh nor marked.
func (w *rewriter) classifyUnits() error {
	for _, kv := range w.from.keys {
		unit, rest, ok := cutUnit(kv.Key, keys.Units)
		if !ok || rest != "" {
			continue
		}
		u, err := keyspace.Decode[state.Unit](kv)
		if errors.Is(err, keyspace.ErrDamaged) {
			// The record is restored unchanged. Programs that read the record report the damage.
			continue
		}
		if err != nil {
			return err
		}

		directory := backupfile.FolderName(u.Machine, strings.ReplaceAll(unit, "/", "-"))
		if !w.Replace && !w.from.archive.Has(directory) {
			w.freshUnits[unit] = true
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

// keepsKey reports whether a key of the backup is restored. A fresh unit loses the records of its previous
// host: its progress, its ports, its charm's state, its debug session, and its membership in relations until it
// enters them again. A new environment also loses the record of the provisioner.
func (w *rewriter) keepsKey(key string) bool {
	if unit, _, ok := cutUnit(key, keys.Uniters); ok {
		return !w.freshUnits[unit]
	}
	if unit, rest, ok := cutUnit(key, keys.Units); ok {
		if rest == "restored" {
			// classifyUnits decides which units get this key.
			return false
		}
		isOfPreviousHost := rest == "ports" || rest == "state" || rest == "debug"
		return !isOfPreviousHost || !w.freshUnits[unit]
	}
	if unit, ok := cutMember(key); ok {
		return !w.freshUnits[unit]
	}

	return w.Replace || key != keys.Provisioner
}

// cutMember returns the unit in the key of a relation's member, such as mysql/0 in
// relations/3/members/mysql/0. It returns ok false for any other key.
func cutMember(key string) (unit string, ok bool) {
	parts := strings.SplitN(key, "/", 4)
	if len(parts) < 4 || parts[0]+"/" != keys.Relations || parts[2] != "members" {
		return "", false
	}
	return parts[3], true
}

// rewriteValue returns the value of a restored key. The environment's record is changed by
// rewriteEnvironment. Without Replace, machines lose their instances. Fresh units lose their charm, their
// status, their workload's version, and an operator's answers to their errors.
func (w *rewriter) rewriteValue(kv keyspace.KeyValue, existing []keyspace.KeyValue) ([]byte, error) {
	if kv.Key == keys.Environment {
		return w.rewriteEnvironment(kv, existing)
	}

	id, ok := strings.CutPrefix(kv.Key, keys.Machines)
	isMachine := ok && !strings.Contains(id, "/")
	if isMachine && !w.Replace {
		return rewriteRecord(kv, func(m *state.Machine) { holdWithoutInstance(id, m) })
	}

	unit, rest, ok := cutUnit(kv.Key, keys.Units)
	isUnit := ok && rest == ""
	if isUnit && w.freshUnits[unit] {
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

// rewriteRecord returns the JSON of a record after f has changed it, with the members that this binary does not
// know. If the record does not decode, rewriteRecord returns it unchanged.
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

// rewriteEnvironment returns the restored record of the environment. kv is the record in the backup, and
// existing are the keys that the store has now. With Replace, the new Incarnation is above the Incarnation in
// the backup and in the store, and the harvest mode is none, since it is unknown which instances were started
// after the backup. In a new environment, Incarnation is 0. w.Change, if there is one, changes the record last.
func (w *rewriter) rewriteEnvironment(kv keyspace.KeyValue, existing []keyspace.KeyValue) ([]byte, error) {
	var replaced state.Environment
	if old, ok := findKey(existing, keys.Environment); ok && w.Replace {
		var err error
		if replaced, err = keyspace.Decode[state.Environment](old); err != nil {
			return nil, err
		}
	}

	return rewriteRecord(kv, func(e *state.Environment) {
		e.Restored = w.from.String()
		if e.Config == nil {
			e.Config = map[string]string{} // w.Change also uses it
		}
		if w.Replace {
			e.Incarnation = max(e.Incarnation, replaced.Incarnation) + 1
			e.Config[state.HarvestMode] = string(state.HarvestNone)
		} else {
			e.Incarnation = 0
		}

		if w.Change != nil {
			w.Change(e)
		}
	})
}

// holdWithoutInstance changes a machine's record to that of a machine without an instance. Such a machine
// waits until the operator starts a new instance. Machine 0 is this host, so it keeps its instance, and does
// not wait.
func holdWithoutInstance(id string, m *state.Machine) {
	m.Addresses = state.Addresses{}
	m.Tools = ""
	if id == "0" {
		m.Status = state.MachinePending
		m.Message = ""
		return
	}

	why := fmt.Sprintf("restored: its instance belongs to the old model; to start a new one: juju resolved %s", id)
	m.InstanceID = ""
	m.Status = state.MachineError
	m.Message = why
	m.Attempts = 0
	m.RetryAt = time.Time{}
}

func isClaimKey(key string) bool { return strings.HasPrefix(key, keys.Claims) }

// raiseClaims returns for each machine a claim without a holder, with an epoch above every epoch that an
// agent can have. The new epoch is above the epochs in the backup and in the store. If the store was lost,
// the latest epochs are unknown. So the new epoch is also above the current Unix time. Epochs grow no faster
// than it, since a claim changes at most once a second.
func raiseClaims(backup, existing []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	epochs := map[string]int64{}
	for _, kv := range slices.Concat(backup, existing) {
		id, ok := strings.CutPrefix(kv.Key, keys.Machines)
		switch {
		case ok && !strings.Contains(id, "/"):
			key := keys.Claim(state.MachineAgent(id))
			epochs[key] = max(epochs[key], time.Now().Unix())
		case isClaimKey(kv.Key):
			c, err := keyspace.Decode[keyspace.ClaimRecord](kv)
			if errors.Is(err, keyspace.ErrDamaged) {
				// The case above raises the epoch, since the machine's record is also among the keys.
				continue
			}
			if err != nil {
				return nil, err
			}
			epochs[kv.Key] = max(epochs[kv.Key], c.Epoch, time.Now().Unix())
		}
	}

	return encodeAll(epochs, func(epoch int64) any { return keyspace.ClaimRecord{Epoch: epoch + 1} })
}

func isCounterKey(key string) bool { return strings.HasPrefix(key, keys.Counters) }

// skippedIDs is how many ids a counter skips if the store does not show how many ids were given since the
// backup. No id must be given twice.
const skippedIDs = 100

// raiseCounters returns the counters of the backup and of the store, each with the higher number. If the store
// does not have a counter, raiseCounters adds skippedIDs to the backup's number, since numbers may have been
// given after the backup.
func raiseCounters(backup, existing []keyspace.KeyValue) ([]keyspace.KeyValue, error) {
	counters := map[string]int{}
	for _, kv := range slices.Concat(backup, existing) {
		if !isCounterKey(kv.Key) {
			continue
		}
		n, err := keyspace.Decode[int](kv)
		if err != nil {
			return nil, err
		}

		// Counters that are not in the store are from the backup.
		_, inStore := findKey(existing, kv.Key)
		if !inStore {
			n += skippedIDs
		}
		counters[kv.Key] = max(counters[kv.Key], n)
	}

	return encodeAll(counters, func(n int) any { return n })
}

// encodeAll returns an entry for each key of values, in no particular order. Its value is the JSON of the
// document that toDoc returns.
func encodeAll[T any](values map[string]T, toDoc func(T) any) (kvs []keyspace.KeyValue, err error) {
	for key, value := range values {
		kv := keyspace.KeyValue{Key: key}
		if kv.Value, err = keyspace.Encode(key, toDoc(value)); err != nil {
			return nil, err
		}
		kvs = append(kvs, kv)
	}

	return kvs, nil
}
