package state

import (
	"strconv"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Uniter reads all records of a unit's agent. The maps of the result are never nil. Uniter returns an error if a
// record does not decode. In an Update, call methods that read single records instead, since each record that
// Uniter reads becomes a condition of the commit.
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
// "op", "workflow", "relations/3", "relations/3/mysql/0" or "services/3/mysql". takeRecord ignores any other key.
func (u *Uniter) takeRecord(rest string, c keyspace.Change) error {
	switch rest {
	case "op":
		return u.takeOp(c)
	case "workflow":
		return u.takeWorkflow(c)
	}

	id, member, ok := parseRelationKey(rest)
	if !ok {
		return nil
	}
	if member == "" {
		return takeInto(u.Relations, id, c)
	}

	if u.Members[id] == nil {
		u.Members[id] = map[string]MemberState{}
	}
	err := takeInto(u.Members[id], member, c)

	// A deletion can have removed the last member.
	if len(u.Members[id]) == 0 {
		delete(u.Members, id)
	}
	return err
}

// takeOp applies the change of the record of the running hook.
func (u *Uniter) takeOp(c keyspace.Change) error {
	if c.Deleted {
		u.Op = nil
		return nil
	}
	u.Op = &Op{}
	return keyspace.DecodeInto(c.KeyValue, u.Op)
}

// takeWorkflow applies the change of the workflow's record.
func (u *Uniter) takeWorkflow(c keyspace.Change) error {
	u.Workflow = Workflow{}
	if c.Deleted {
		return nil
	}
	return keyspace.DecodeInto(c.KeyValue, &u.Workflow)
}

// takeInto applies the change of one record to records[key].
func takeInto[K comparable, V any](records map[K]V, key K, c keyspace.Change) (err error) {
	if c.Deleted {
		delete(records, key)
		return nil
	}
	records[key], err = keyspace.Decode[V](c.KeyValue)
	return err
}

// RelationRecordOf parses the key of a unit's own record of a relation or of one of the relation's members.
// The member is empty for the record of the relation. ok is false for the unit's other records, such as its
// workflow, and for keys that do not belong to the unit's agent.
func RelationRecordOf(unit, key string) (id int, member string, ok bool) {
	rest, own := strings.CutPrefix(key, keys.Uniter(unit))
	if !own {
		return 0, "", false
	}
	return parseRelationKey(rest)
}

// parseRelationKey parses "relations/3", "relations/3/mysql/0" and "services/3/mysql". In the first of them the
// member is empty. ok is false unless the first part is "relations" or "services", and the second is a number.
func parseRelationKey(text string) (id int, member string, ok bool) {
	kind, idAndMember, _ := strings.Cut(text, "/")
	if kind != "relations" && kind != "services" {
		return 0, "", false
	}

	number, member, _ := strings.Cut(idAndMember, "/")
	id, err := strconv.Atoi(number)
	return id, member, err == nil
}

// Op reads the running hook; ok is false if there is none.
func (v *View) Op(unit string) (op Op, ok bool, err error) {
	return keyspace.Load[Op](v.keys, keys.Op(unit))
}

// Workflow reads a unit's workflow. It is the zero Workflow if the unit's agent has not started yet.
func (v *View) Workflow(unit string) (Workflow, error) {
	return keyspace.LoadOrZero[Workflow](v.keys, keys.Workflow(unit))
}

// RelationState reads a unit's state in a relation; ok is false if the unit's agent has not recorded the
// relation.
func (v *View) RelationState(unit string, id int) (r RelationState, ok bool, err error) {
	return keyspace.Load[RelationState](v.keys, keys.RelationState(unit, id))
}

// MemberState reads a unit's record of a member; ok is false if there is none.
func (v *View) MemberState(unit string, id int, member string) (m MemberState, ok bool, err error) {
	return keyspace.Load[MemberState](v.keys, keys.MemberState(unit, id, member))
}

// PutOp records the hook that the unit is running.
func (tx *Tx) PutOp(unit string, op Op) error { return tx.keys.Put(keys.Op(unit), op) }

// ClearOp records that the unit is not running a hook.
func (tx *Tx) ClearOp(unit string) error {
	tx.keys.Remove(keys.Op(unit))
	return nil
}

// PutWorkflow writes a unit's workflow.
func (tx *Tx) PutWorkflow(unit string, w Workflow) error { return tx.keys.Put(keys.Workflow(unit), w) }

// ChangeWorkflow reads a unit's workflow, calls change with it, and writes it.
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

// RemoveRelationState removes the state of a relation that has ended for the unit, and an operator's answer
// to an error in it. It leaves the records of members, which RemoveMember removes after each member's last
// hook.
func (tx *Tx) RemoveRelationState(unit string, id int) error {
	tx.keys.Remove(keys.RelationState(unit, id))
	return tx.ClearResolved(unit, id)
}

// PutMember writes a unit's record of a member. If the same transaction has not read an existing record, call
// RewriteMember instead.
func (tx *Tx) PutMember(unit string, id int, member string, m MemberState) error {
	return tx.keys.Put(keys.MemberState(unit, id, member), m)
}

// RewriteMember is PutMember for a member that has a record. It reads the record first, and so keeps fields
// that this binary does not know.
func (tx *Tx) RewriteMember(unit string, id int, member string, m MemberState) error {
	if _, _, err := tx.keys.Get(keys.MemberState(unit, id, member)); err != nil {
		return err
	}
	return tx.PutMember(unit, id, member, m)
}

// PrefetchMembers reads, in one round trip, a unit's workflow and its records of the members of relations.
// members has the names of the members by relation id.
func (tx *Tx) PrefetchMembers(unit string, members map[int][]string) error {
	all := []string{keys.Workflow(unit)}
	for id, names := range members {
		for _, member := range names {
			all = append(all, keys.MemberState(unit, id, member))
		}
	}

	return tx.keys.Prefetch(keyspace.Exactly(all...))
}

// RemoveMember removes a unit's record of a member.
func (tx *Tx) RemoveMember(unit string, id int, member string) {
	tx.keys.Remove(keys.MemberState(unit, id, member))
}

// Apply applies the writes of an Update to a unit's records u, which were read before the Update. It ignores
// writes to all other keys.
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

// PrefetchHook reads, in one round trip, the records that change when a unit's hook begins or ends. For a
// hook that does not belong to a relation, relation is NoRelation and member is empty.
func (tx *Tx) PrefetchHook(unit string, relation int, member string) error {
	all := []string{keys.Unit(unit), keys.Op(unit), keys.Workflow(unit)}
	if relation != NoRelation {
		all = append(all, keys.RelationState(unit, relation))
	}
	if member != "" {
		all = append(all, keys.MemberState(unit, relation, member))
	}
	return tx.keys.Prefetch(keyspace.Exactly(all...))
}
