package state

import (
	"strconv"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Uniter reads all records of a unit's agent; the zero value with empty maps if there are none. In
// an Update it makes all of them conditions: prefer the single records there.
func (v *View) Uniter(unit string) (Uniter, error) {
	u := Uniter{Relations: map[int]RelationState{}, Members: map[int]map[string]MemberState{}}
	prefix := keys.Uniter(unit)
	kvs, err := v.keys.List(prefix)
	if err != nil {
		return Uniter{}, err
	}

	for _, kv := range kvs {
		if err := u.takeRecord(strings.TrimPrefix(kv.Key, prefix), keyspace.Change{KeyValue: kv}); err != nil {
			return Uniter{}, err
		}
	}

	return u, nil
}

// takeRecord applies the change of one record of the unit's agent. rest is the record's key below the unit:
// "op", "workflow", "relations/3", "relations/3/mysql/0" or "services/3/mysql".
func (u *Uniter) takeRecord(rest string, c keyspace.Change) (err error) {
	id, member, ofRelation := parseRelationKey(rest)

	switch {
	case rest == "op" && c.Deleted:
		u.Op = nil
	case rest == "op":
		u.Op = &Op{}
		err = keyspace.DecodeInto(c.KeyValue, u.Op)
	case rest == "workflow":
		u.Workflow = Workflow{}
		if !c.Deleted {
			err = keyspace.DecodeInto(c.KeyValue, &u.Workflow)
		}
	case ofRelation && member == "":
		err = takeInto(u.Relations, id, c)
	case ofRelation:
		if u.Members[id] == nil {
			u.Members[id] = map[string]MemberState{}
		}
		if err = takeInto(u.Members[id], member, c); len(u.Members[id]) == 0 {
			delete(u.Members, id)
		}
	}

	return err
}

func takeInto[K comparable, V any](records map[K]V, key K, c keyspace.Change) (err error) {
	if c.Deleted {
		delete(records, key)
		return nil
	}
	records[key], err = keyspace.Decode[V](c.KeyValue)
	return err
}

// RelationRecordOf parses the key of a unit's own record of a relation, or of one of its members;
// member is empty for the relation's.
func RelationRecordOf(unit, key string) (id int, member string, ok bool) {
	rest, own := strings.CutPrefix(key, keys.Uniter(unit))
	if !own {
		return 0, "", false
	}
	return parseRelationKey(rest)
}

// parseRelationKey parses "relations/3/mysql/0" and "services/3/mysql"; the member is
// empty in "relations/3".
func parseRelationKey(rest string) (id int, member string, ok bool) {
	kind, rest, _ := strings.Cut(rest, "/")
	ok = kind == "relations" || kind == "services"
	number, member, _ := strings.Cut(rest, "/")
	id, err := strconv.Atoi(number)
	return id, member, ok && err == nil
}

// Op reads the running hook; ok is false if there is none.
func (v *View) Op(unit string) (op Op, ok bool, err error) {
	return keyspace.Load[Op](v.keys, keys.Op(unit))
}

// Workflow reads a unit's workflow; the zero Workflow before its agent began.
func (v *View) Workflow(unit string) (Workflow, error) {
	return keyspace.LoadOrZero[Workflow](v.keys, keys.Workflow(unit))
}

// RelationState reads a unit's state in a relation; ok is false if its agent does not
// know the relation.
func (v *View) RelationState(unit string, id int) (r RelationState, ok bool, err error) {
	return keyspace.Load[RelationState](v.keys, keys.RelationState(unit, id))
}

// MemberState reads a unit's record of a member; ok is false if there is none.
func (v *View) MemberState(unit string, id int, member string) (m MemberState, ok bool, err error) {
	return keyspace.Load[MemberState](v.keys, keys.MemberState(unit, id, member))
}

// PutOp records the hook that runs from now on.
func (tx *Tx) PutOp(unit string, op Op) error { return tx.keys.Put(keys.Op(unit), op) }

// ClearOp records that no hook runs.
func (tx *Tx) ClearOp(unit string) error {
	tx.keys.Remove(keys.Op(unit))
	return nil
}

// PutWorkflow writes a unit's workflow.
func (tx *Tx) PutWorkflow(unit string, w Workflow) error { return tx.keys.Put(keys.Workflow(unit), w) }

// ChangeWorkflow writes a unit's workflow as change makes it.
func (tx *Tx) ChangeWorkflow(unit string, change func(w *Workflow)) error {
	w, err := tx.Workflow(unit)
	if err != nil {
		return err
	}
	change(&w)
	return tx.PutWorkflow(unit, w)
}

// PutRelationState writes a unit's state in a relation.
func (tx *Tx) PutRelationState(unit string, id int, r RelationState) error {
	return tx.keys.Put(keys.RelationState(unit, id), r)
}

// RemoveRelationState removes the state of a relation that is over for the unit, and an operator's
// answer to an error in it. Its members are removed one by one, with their last hooks.
func (tx *Tx) RemoveRelationState(unit string, id int) error {
	tx.keys.Remove(keys.RelationState(unit, id))
	return tx.ClearResolved(unit, id)
}

// PutMember writes a unit's record of a member that has none, or was read before.
func (tx *Tx) PutMember(unit string, id int, member string, m MemberState) error {
	return tx.keys.Put(keys.MemberState(unit, id, member), m)
}

// RewriteMember is like PutMember, for a member that has a record. It keeps fields of the record that this
// binary does not know.
func (tx *Tx) RewriteMember(unit string, id int, member string, m MemberState) error {
	if _, _, err := tx.keys.Get(keys.MemberState(unit, id, member)); err != nil {
		return err
	}
	return tx.PutMember(unit, id, member, m)
}

// PrefetchMembers brings, in one round trip, a unit's workflow and its records of members, by relation.
func (tx *Tx) PrefetchMembers(unit string, members map[int][]string) error {
	all := []string{keys.Workflow(unit)}
	for id, names := range members {
		for _, member := range names {
			all = append(all, keys.MemberState(unit, id, member))
		}
	}

	return tx.keys.Prefetch(all...)
}

// RemoveMember removes a unit's record of a member.
func (tx *Tx) RemoveMember(unit string, id int, member string) {
	tx.keys.Remove(keys.MemberState(unit, id, member))
}

// Apply brings a unit's records, as they were read before, up to date in place.
func (w Writes) Apply(unit string, u *Uniter) error {
	for _, c := range w.changes {
		rest, own := strings.CutPrefix(c.Key, keys.Uniter(unit))
		if !own {
			continue
		}
		if err := u.takeRecord(rest, c); err != nil {
			return err
		}
	}

	return nil
}

// PrefetchHook reads, in one round trip, the records that change when a hook of a unit begins and ends. For
// a hook of the unit itself, relation is NoRelation and member is empty.
func (tx *Tx) PrefetchHook(unit string, relation int, member string) error {
	all := []string{keys.Unit(unit), keys.Op(unit), keys.Workflow(unit)}
	if relation != NoRelation {
		all = append(all, keys.RelationState(unit, relation))
	}
	if member != "" {
		all = append(all, keys.MemberState(unit, relation, member))
	}
	return tx.keys.Prefetch(all...)
}
