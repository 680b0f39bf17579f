package state

import (
	"cmp"
	"fmt"
	"slices"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Member is one unit that is in a relation.
type Member struct {
	Unit      string `json:"-"`
	Principal string `json:"principal,omitempty"` // container scope: the unit whose machine it shares, itself for a principal
	Version   int64  `json:"version"`             // of its settings there
}

// Members reads the units in a relation, by service and number.
func (v *View) Members(id int) ([]Member, error) {
	return v.membersBelow(id, keys.Members(id))
}

// MembersOf reads the units of one service in a relation, by number.
func (v *View) MembersOf(id int, service string) ([]Member, error) {
	return v.membersBelow(id, keys.ServiceMembers(id, service))
}

func (v *View) membersBelow(id int, prefix string) ([]Member, error) {
	members := []Member{}
	err := readBelow(v, prefix, func(key string, m Member) {
		m.Unit = key[len(keys.Members(id)):]
		members = append(members, m)
	})
	slices.SortFunc(members, func(a, b Member) int { return charm.CompareUnits(a.Unit, b.Unit) })
	return members, err
}

// Member reads one unit's membership; ok is false if there is none.
func (v *View) Member(id int, unit string) (m Member, ok bool, err error) {
	m, ok, err = keyspace.Load[Member](v.keys, keys.Member(id, unit))
	m.Unit = unit
	return m, ok, err
}

// EnterRelation makes a unit a member, with settings merged into those it may have had there. A
// principal that enters a relation with a subordinate service gets its unit of that. A member
// already in is left as it is. ErrDead if relation or unit is going, ErrNotFound if one is gone.
func (tx *Tx) EnterRelation(id int, unit string, settings map[string]string) error {
	if _, in, err := tx.Member(id, unit); err != nil || in {
		return err
	}
	r, rerr := tx.Relation(id)
	u, uerr := tx.Unit(unit)
	if err := cmp.Or(rerr, uerr); err != nil {
		return err
	}
	if _, ok := r.Endpoint(u.Service); !ok {
		return fmt.Errorf("cannot enter %s: service %q is no part of it", r, u.Service)
	}
	if r.Life != Alive || u.Life != Alive {
		return refuse(ErrDead, "cannot enter %s with unit %q: the relation is %s, the unit %s", r, unit, r.Life, u.Life)
	}
	m := Member{Unit: unit}
	if r.Scope == charm.Container {
		m.Principal = cmp.Or(u.Principal, unit)
	}
	return cmp.Or(tx.keys.Put(keys.Member(id, unit), m), tx.initSettings(id, unit, settings), tx.addSubordinate(r, u))
}

// initSettings makes the settings node of a unit that enters, so that it exists even
// without a value.
func (tx *Tx) initSettings(id int, unit string, settings map[string]string) error {
	s, _, err := tx.readSettings(keys.Settings(id, unit))
	if err != nil {
		return err
	}
	for key, value := range settings {
		if err := CheckSetting(key, value); err != nil {
			return err
		}
		s.Values[key] = value
	}
	return tx.putSettings(id, unit, s.Version+1, s.Values)
}

// LeaveRelation ends a unit's membership; its settings stay. A dying relation
// goes with its last member. Not being in is no error.
func (tx *Tx) LeaveRelation(id int, unit string) error {
	if _, in, err := tx.Member(id, unit); err != nil || !in {
		return err
	}
	tx.keys.Remove(keys.Member(id, unit))
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	return tx.RemoveRelationIfDone(r)
}
