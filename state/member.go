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

// Member is a unit in a relation.
type Member struct {
	Unit string `json:"-"`
	// Principal is the unit's principal in a relation of container scope: the unit itself, if it is not a
	// subordinate. It is empty in other relations.
	Principal string `json:"principal,omitempty"`
	// Version is the version of the unit's settings in the relation.
	Version int64 `json:"version"`
}

// Members reads the units in a relation, sorted by service and number.
func (v *View) Members(id int) ([]Member, error) {
	return v.membersBelow(id, keys.Members(id))
}

// MembersOf reads the units of one service in a relation, sorted by number.
func (v *View) MembersOf(id int, service string) ([]Member, error) {
	return v.membersBelow(id, keys.ServiceMembers(id, service))
}

// membersBelow reads the members of a relation whose keys have the prefix, sorted by service and number.
func (v *View) membersBelow(id int, prefix string) ([]Member, error) {
	members := []Member{}
	err := ReadBelow(v, prefix, func(key string, m Member) {
		// The unit's name can begin within prefix, as in MembersOf.
		m.Unit = key[len(keys.Members(id)):]
		members = append(members, m)
	})

	slices.SortFunc(members, func(a, b Member) int { return charm.CompareUnits(a.Unit, b.Unit) })
	return members, err
}

// Member reads one unit's membership; ok is false if the unit is not a member.
func (v *View) Member(id int, unit string) (m Member, ok bool, err error) {
	m, ok, err = keyspace.Load[Member](v.keys, keys.Member(id, unit))
	m.Unit = unit
	return m, ok, err
}

// EnterRelation makes a unit a member of a relation, and merges settings into the settings that are left from
// an earlier membership. If the relation requires a subordinate unit that the unit lacks, EnterRelation requests
// or adds that subordinate unit. It does nothing if the unit is already a member. It returns ErrDead if the
// relation, the unit or the subordinate's service is not alive, and ErrNotFound if one of them does not exist.
func (tx *Tx) EnterRelation(id int, unit string, settings map[string]string) error {
	_, isMember, err := tx.Member(id, unit)
	if err != nil {
		return err
	}
	if isMember {
		return nil
	}

	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	u, err := tx.Unit(unit)
	if err != nil {
		return err
	}

	if _, ok := r.Endpoint(u.Service); !ok {
		return fmt.Errorf("cannot enter %s: application %q is not part of it", r, u.Service)
	}
	if r.Life != Alive || u.Life != Alive {
		return refuse(ErrDead, "cannot enter %s with unit %q: the relation is %s, and the unit is %s", r, unit,
			r.Life, u.Life)
	}

	m := Member{Unit: unit}
	if r.Scope == charm.Container {
		// A unit that is not a subordinate is its own principal.
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

// initSettings writes the settings of a unit that enters a relation, so that their record exists even without
// values. It keeps the values that are left from an earlier membership, except those that settings replaces.
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

// LeaveRelation ends a unit's membership. The unit's settings stay. A dying relation is removed with its last
// member. It does nothing if the unit is not a member. Agents call DepartRelation instead.
func (tx *Tx) LeaveRelation(id int, unit string) error {
	return tx.leaveRelation(id, unit, tx.RemoveRelationIfDone)
}

// leaveRelation removes the unit's membership and then calls end with the relation. It does nothing if the
// unit is not a member. If the relation has no record, it does not call end.
func (tx *Tx) leaveRelation(id int, unit string, end func(r Relation) error) error {
	_, isMember, err := tx.Member(id, unit)
	if err != nil {
		return err
	}
	if !isMember {
		return nil
	}

	tx.keys.Remove(keys.Member(id, unit))
	r, err := tx.Relation(id)
	if err != nil {
		return IgnoreNotFound(err)
	}

	return end(r)
}

// hasSubordinate reports whether the principal has an alive subordinate unit of the service.
func (v *View) hasSubordinate(principal Unit, service string) (bool, error) {
	for _, name := range principal.Subordinates {
		if unitService, _, _ := strings.Cut(name, "/"); unitService != service {
			continue
		}

		u, err := v.Unit(name)
		if err == nil && u.Life == Alive {
			return true, nil
		}
		// A subordinate that is gone is not alive.
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}

	return false, nil
}

// destroySubordinates destroys the units that are subordinates of u.
func (tx *Tx) destroySubordinates(u Unit) error {
	for _, name := range u.Subordinates {
		if err := IgnoreNotFound(tx.DestroyUnit(name)); err != nil {
			return err
		}
	}
	return nil
}

// leavePrincipal removes a subordinate unit u from its principal's list. It does nothing if u is not a
// subordinate, or if its principal is gone.
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

// DestroyIfUnrelated makes a subordinate unit dying if it no longer has an alive relation of container scope
// with its principal's service. It changes only the unit's own record, since the unit's agent calls it. It does
// nothing for a unit that is not a subordinate, or not alive.
func (tx *Tx) DestroyIfUnrelated(name string) error {
	u, err := tx.Unit(name)
	if err != nil {
		return err
	}
	if u.Principal == "" {
		return nil
	}

	principalService, _, _ := strings.Cut(u.Principal, "/")
	relations, err := tx.findRelations(u.Service, func(_ int, index relationIndex) bool {
		// Other is an endpoint, "service:name".
		otherService, _, _ := strings.Cut(index.Other, ":")
		return otherService == principalService
	})
	if err != nil {
		return err
	}

	keepsUnit := func(r Relation) bool { return r.Scope == charm.Container && r.Life == Alive }
	if slices.ContainsFunc(relations, keepsUnit) {
		return nil
	}

	if u.Life != Alive {
		return nil
	}
	u.Life = Dying
	return tx.keys.Put(keys.Unit(name), u)
}

// IsRelationFor reports whether a relation of the unit's service concerns the unit, as [Relation.IsFor] does. It
// reads the service at the other end only if the answer depends on that service, and then returns false if that
// service no longer exists.
func (v *View) IsRelationFor(r Relation, u Unit) (bool, error) {
	// In these cases IsFor returns true for any service at the other end.
	if u.Principal == "" || r.Scope != charm.Container || r.IsPeer() {
		return true, nil
	}
	other, err := v.Service(r.Other(u.Service).Service)
	if err != nil {
		return false, IgnoreNotFound(err)
	}

	return r.IsFor(u, other), nil
}

// IsFor reports whether the unit takes part in the relation. In a container-scoped relation, a subordinate unit takes
// part only if the service at the other end is its principal's service, or is itself subordinate. other is the service
// at the other end. [View.IsRelationFor] also reads it.
func (r Relation) IsFor(u Unit, other Service) bool {
	if u.Principal == "" || r.Scope != charm.Container || r.IsPeer() || other.Subordinate {
		return true
	}
	principal, _, _ := strings.Cut(u.Principal, "/")
	return other.Name == principal
}
