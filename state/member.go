package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	err := ReadBelow(v, prefix, func(key string, m Member) {
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

// EnterRelation makes a unit a member of a relation, and merges settings into those that it has there from
// before. A principal that enters a relation with a subordinate service requests its unit of that service.
// It does nothing for a member. It returns ErrDead if the relation or the unit is going, and ErrNotFound if
// one of them is gone.
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
		return fmt.Errorf("cannot enter %s: application %q is not part of it", r, u.Service)
	}
	if r.Life != Alive || u.Life != Alive {
		return refuse(ErrDead, "cannot enter %s with unit %q: the relation is %s, the unit %s", r, unit,
			r.Life, u.Life)
	}

	m := Member{Unit: unit}
	if r.Scope == charm.Container {
		m.Principal = cmp.Or(u.Principal, unit)
	}
	if err := tx.keys.Put(keys.Member(id, unit), m); err != nil {
		return err
	}
	if err := tx.initSettings(id, unit, settings); err != nil {
		return err
	}

	return tx.wantSubordinate(r, u)
}

// initSettings creates the settings node of a unit that enters, so that the node exists even without a
// value.
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

// LeaveRelation ends a unit's membership. The unit's settings stay. A dying relation is removed with its
// last member. It returns no error if the unit is not a member. Agents call DepartRelation.
func (tx *Tx) LeaveRelation(id int, unit string) error {
	return tx.leaveRelation(id, unit, tx.RemoveRelationIfDone)
}

// leaveRelation calls end with the relation once the unit is not in it any more.
func (tx *Tx) leaveRelation(id int, unit string, end func(r Relation) error) error {
	if _, in, err := tx.Member(id, unit); err != nil || !in {
		return err
	}

	tx.keys.Remove(keys.Member(id, unit))
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}

	return end(r)
}

// hasSubordinate does not count a unit that is going.
func (v *View) hasSubordinate(principal Unit, service string) (bool, error) {
	for _, name := range principal.Subordinates {
		if owner, _, _ := strings.Cut(name, "/"); owner != service {
			continue
		}

		u, err := v.Unit(name)
		if err == nil && u.Life == Alive {
			return true, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}

	return false, nil
}

func (tx *Tx) destroySubordinates(u Unit) error {
	for _, name := range u.Subordinates {
		if err := IgnoreNotFound(tx.DestroyUnit(name)); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) leavePrincipal(u Unit) error {
	if u.Principal == "" {
		return nil
	}
	p, err := tx.Unit(u.Principal)
	if err != nil {
		return IgnoreNotFound(err)
	}

	p.Subordinates = slices.DeleteFunc(slices.Clone(p.Subordinates), func(name string) bool {
		return name == u.Name
	})
	return tx.keys.Put(keys.Unit(p.Name), p)
}

// DestroyIfUnrelated makes a subordinate unit dying if no relation holds it to its
// principal's service any more. The unit's own agent calls it, and nothing but its record changes.
func (tx *Tx) DestroyIfUnrelated(name string) error {
	u, err := tx.Unit(name)
	if err != nil || u.Principal == "" {
		return err
	}

	service, _, _ := strings.Cut(u.Principal, "/")
	relations, err := tx.findRelations(u.Service, func(_ int, index relationIndex) bool {
		other, _, _ := strings.Cut(index.Other, ":")
		return other == service
	})
	if err != nil {
		return err
	}

	holds := func(r Relation) bool { return r.Scope == charm.Container && r.Life == Alive }
	if slices.ContainsFunc(relations, holds) {
		return nil
	}

	if u.Life != Alive {
		return nil
	}
	u.Life = Dying
	return tx.keys.Put(keys.Unit(name), u)
}

// IsRelationFor reports whether a relation of the unit's service concerns the unit. In container scope a
// subordinate's unit meets only its own principal, and other subordinates of the same principal.
func (v *View) IsRelationFor(r Relation, u Unit) (bool, error) {
	if u.Principal == "" || r.Scope != charm.Container || r.IsPeer() {
		return true, nil
	}
	other, err := v.Service(r.Other(u.Service).Service)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}

	return RelationConcerns(r, u, other), err
}

// RelationConcerns is IsRelationFor for whoever has read the service at the other end.
func RelationConcerns(r Relation, u Unit, other Service) bool {
	if u.Principal == "" || r.Scope != charm.Container || r.IsPeer() || other.Subordinate {
		return true
	}
	principal, _, _ := strings.Cut(u.Principal, "/")
	return other.Name == principal
}
