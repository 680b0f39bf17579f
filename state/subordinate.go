package state

import (
	"errors"
	"slices"
	"strings"

	"bijou/state/charm"
	"bijou/state/keys"
)

// addSubordinate gives a principal that has entered a container-scoped relation with a
// subordinate service its unit of that, on the same machine, unless it has one. ErrDead
// if that service is going.
func (tx *Tx) addSubordinate(r Relation, principal Unit) error {
	other := r.Other(principal.Service).Service
	if r.Scope != charm.Container || r.IsPeer() || principal.Principal != "" {
		return nil
	}
	s, err := tx.aliveService(other)
	if err != nil || !s.Subordinate {
		return err
	}
	there, err := tx.hasSubordinate(principal, other)
	if err != nil || there {
		return err
	}
	u, err := tx.insertUnit(Unit{Service: other, Machine: principal.Machine, Series: s.Series, Principal: principal.Name})
	if err == nil {
		err = tx.addServiceStorage(s, u)
	}
	if err != nil {
		return err
	}
	principal.Subordinates = append(slices.Clone(principal.Subordinates), u.Name)
	return tx.keys.Put(keys.Unit(principal.Name), principal)
}

// hasSubordinate does not count a unit that is going.
func (tx *Tx) hasSubordinate(principal Unit, service string) (bool, error) {
	for _, name := range principal.Subordinates {
		if owner, _, _ := strings.Cut(name, "/"); owner != service {
			continue
		}
		u, err := tx.Unit(name)
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
	p.Subordinates = slices.DeleteFunc(slices.Clone(p.Subordinates), func(name string) bool { return name == u.Name })
	return tx.keys.Put(keys.Unit(p.Name), p)
}

// DestroyIfUnrelated makes a subordinate unit dying if no relation holds it to its
// principal's service any more.
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
	return tx.DestroyUnit(name)
}

// IsRelationFor reports whether the relation, one of its service's, is one for the unit. In
// container scope a subordinate's unit has to do with its own principal and with other
// subordinates, of which it meets those that share its principal; other principals'
// services are none of its business.
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
