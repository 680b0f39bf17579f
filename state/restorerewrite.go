package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state/store"
)

// rewriteKeys is what a store is to hold once the backup is restored to it, in the order
// of the keys; there is what it holds before.
func (r Restoration) rewriteKeys(from *backup, there []store.KV) (all []store.KV, err error) {
	w := &rewriter{Restoration: r, from: from, anew: map[string]bool{}}
	if err := w.findUnits(); err != nil {
		return nil, err
	}
	for _, kv := range from.keys {
		if isClaim(kv.Key) || r.Replace && isCounter(kv.Key) || !w.keepsKey(kv.Key) {
			continue
		}
		if kv.Value, err = w.valueOf(kv, there); err != nil {
			return nil, err
		}
		all = append(all, kv)
	}
	all = append(all, w.marks...)
	if r.Replace {
		ids, err := raisedCounters(from.keys, there)
		if err != nil {
			return nil, err
		}
		claims, err := raisedClaims(from.keys, there)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, ids, claims)
	}
	slices.SortFunc(all, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return all, nil
}

// rewriter makes the keys of a backup those of an environment to be.
type rewriter struct {
	Restoration
	from  *backup
	anew  map[string]bool // the units that begin anew: their folders are nowhere
	marks []store.KV
}

// findUnits sorts the units into those that begin anew, and those whose folders are
// there, which are marked.
func (w *rewriter) findUnits() error {
	for _, kv := range w.from.keys {
		unit, rest, ok := unitOf(kv.Key, unitsPrefix)
		if !ok || rest != "" {
			continue
		}
		u, err := decode[Unit](kv)
		if err != nil {
			return err
		}
		if !w.Replace && !w.from.hasFolder(u.Machine, unit) {
			w.anew[unit] = true
			continue
		}
		if w.Adopt {
			continue
		}
		value, err := encode(kv.Key, Restored{Backup: w.from.header.Time})
		if err != nil {
			return err
		}
		w.marks = append(w.marks, store.KV{Key: restoredKey(unit), Value: value})
	}
	return nil
}

// keepsKey says if a key is restored. Of units that begin anew goes what is of their life
// on their hosts: how far they are, what their charms have noted there, and who of them
// is in which relation, until they enter again.
func (w *rewriter) keepsKey(key string) bool {
	if unit, _, ok := unitOf(key, unitersPrefix); ok {
		return !w.anew[unit]
	}
	if unit, rest, ok := unitOf(key, unitsPrefix); ok {
		own := rest == "ports" || rest == "state" || rest == "debug"
		return rest != "restored" && !(w.anew[unit] && own)
	}
	if parts := strings.SplitN(key, "/", 4); len(parts) == 4 && parts[0]+"/" == relationsPrefix && parts[2] == "members" {
		return !w.anew[parts[3]]
	}
	return w.Replace || key != provisionerKey
}

// valueOf is the value that a key is restored with.
func (w *rewriter) valueOf(kv store.KV, there []store.KV) ([]byte, error) {
	if kv.Key == environmentKey {
		return w.changeEnvironment(kv, there)
	}
	if id, ok := strings.CutPrefix(kv.Key, machinesPrefix); ok && !w.Replace && !strings.Contains(id, "/") {
		return changeDoc(kv, func(m *Machine) { leaveInstance(id, m) })
	}
	if unit, rest, ok := unitOf(kv.Key, unitsPrefix); ok && rest == "" && w.anew[unit] {
		return changeDoc(kv, func(u *Unit) {
			u.Charm, u.Status, u.Workload = "", WorkloadStatus{}, WorkloadVersion{}
			u.Resolved, u.ResolvedRelations = Unresolved, nil
		})
	}
	return kv.Value, nil
}

// changeDoc is a value with one thing of it changed.
func changeDoc[T any](kv store.KV, f func(doc *T)) ([]byte, error) {
	doc, err := decode[T](kv)
	if err != nil {
		return nil, err
	}
	f(&doc)
	return encode(kv.Key, doc)
}

// changeEnvironment is the value of the environment's record. Which instances are there since the backup
// was made nobody knows, so that a replaced environment stops none by itself.
func (w *rewriter) changeEnvironment(kv store.KV, there []store.KV) ([]byte, error) {
	before := Environment{}
	if old, ok := at(there, environmentKey); ok {
		var err error
		if before, err = decode[Environment](old); err != nil {
			return nil, err
		}
	}
	return changeDoc(kv, func(e *Environment) {
		if w.Replace {
			e.Incarnation = max(e.Incarnation, before.Incarnation) + 1
			if e.Config == nil {
				e.Config = map[string]string{}
			}
			e.Config[HarvestMode] = string(HarvestNone)
		} else {
			e.Incarnation = 0
		}
		if w.Change != nil {
			w.Change(e)
		}
	})
}

// leaveInstance leaves a machine's instance to the old environment.
func leaveInstance(id string, m *Machine) {
	m.Addresses, m.Tools = Addresses{}, ""
	if id == "0" { // this host
		m.Status, m.Message = MachinePending, ""
		return
	}
	why := fmt.Sprintf("restored: its instance is the old environment's; juju resolved %s starts another", id)
	m.InstanceID, m.Status, m.Message = "", MachineError, why
	m.Attempts, m.RetryAt = 0, time.Time{}
}
