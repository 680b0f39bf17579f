package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// DestroyService marks a service, its relations and its units as dying. It immediately removes the relations
// and units that no agent uses yet, and the service if none are left. Agents remove the others. DestroyService
// works in batches; after an interruption call it again. It returns ErrNotFound if there is no such service.
func (s *State) DestroyService(ctx context.Context, name string) error {
	return s.destroyService(ctx, name, func(relations []int, units []string) error {
		update := s.withProgress(s.Update, Steps{
			What:  "relations of " + name + " ended",
			Total: len(relations),
		})
		if err := inBatches(ctx, update, relations, (*Tx).destroyRelation); err != nil {
			return err
		}

		update = s.withProgress(s.Update, Steps{
			What:  "units of " + name + " told to end",
			Total: len(units),
		})

		return inBatches(ctx, update, units, (*Tx).DestroyUnit)
	})
}

// destroyService marks a service as dying, calls destroyParts with its relations and units, and removes the
// service if no part is left.
func (s *State) destroyService(
	ctx context.Context,
	name string,
	destroyParts func(relations []int, units []string) error,
) error {
	var relations []int
	var units []string
	err := s.Update(ctx, func(tx *Tx) (err error) {
		relations, units, err = tx.markServiceDying(name)
		return err
	})
	if err != nil {
		return err
	}
	if err := destroyParts(relations, units); err != nil {
		return fmt.Errorf("cannot destroy application %q: %w", name, err)
	}

	return s.Update(ctx, func(tx *Tx) error { return tx.removeServiceIfDone(name) })
}

// markServiceDying marks the service as dying, so that nothing can be added to it, and lists its relations
// and units. The units' records are not conditions of the commit, since the records of many units change often.
// The counter of units is a condition, since each new unit changes it.
func (tx *Tx) markServiceDying(name string) (relations []int, units []string, err error) {
	s, err := tx.Service(name)
	if err != nil {
		return nil, nil, err
	}

	s.Life = Dying
	if err := tx.keys.Put(keys.Service(name), s); err != nil {
		return nil, nil, err
	}

	index, err := tx.keys.List(keys.ServiceRelations(name))
	if err != nil {
		return nil, nil, err
	}

	for _, kv := range index {
		if id, ok := keys.CutInt(kv.Key, keys.ServiceRelations(name)); ok {
			relations = append(relations, id)
		}
	}

	// The counter's value does not matter. It is read so that the commit fails if a unit is added.
	if _, _, err := tx.keys.Get(keys.UnitCounter(name)); err != nil {
		return nil, nil, err
	}
	kvs, err := tx.keys.ListUnguarded(keys.ServiceUnits(name))
	if err != nil {
		return nil, nil, err
	}

	// The list also has the keys below the units' records. unitNames leaves them out.
	return relations, unitNames(kvs, keys.Units), nil
}

// removeServiceIfDone removes a dying service that has no relations and no units. It does nothing if the
// service is alive, or is already gone.
func (tx *Tx) removeServiceIfDone(name string) error {
	s, err := tx.Service(name)
	if err != nil {
		return IgnoreNotFound(err)
	}
	if s.Life == Alive {
		return nil
	}

	for _, prefix := range []string{keys.ServiceRelations(name), keys.ServiceUnits(name)} {
		empty, err := tx.keys.IsPrefixEmpty(prefix)
		if err != nil {
			return err
		}
		if !empty {
			return nil
		}
	}

	tx.keys.Remove(keys.Service(name))

	// No keys are left, since the two limits suffice: a service has at most resources.MaxPerService resources,
	// which equals keyspace.MaxRemovedKeys, and only a few other keys.
	if _, err = tx.keys.RemoveBelow(keys.ServiceResources(name), keyspace.MaxRemovedKeys); err != nil {
		return err
	}
	_, err = tx.keys.RemoveBelow(keys.BelowService(name), batchSize)
	return err
}

// DestroyRelation marks a relation as dying, so that its members leave it. It removes a relation without
// members at once. It returns ErrInUse for a peer relation, which can only be removed with its service, and
// ErrNotFound if there is no such relation.
func (tx *Tx) DestroyRelation(id int) error {
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	if r.IsPeer() {
		return refuse(ErrInUse, "cannot destroy %s: a peer relation can end only with its application %q", r,
			r.Endpoints[0].Service)
	}

	return tx.destroyRelation(id)
}

// destroyRelation is DestroyRelation for relations of all kinds, including peer relations.
func (tx *Tx) destroyRelation(id int) error {
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}

	r.Life = Dying
	if err := tx.rewriteRelation(r); err != nil {
		return err
	}

	return tx.RemoveRelationIfDone(r)
}

// RemoveRelationIfDone removes a dying relation that has no members left, together with the dying services that
// were waiting for its removal. It does nothing if the relation is alive or has members. It removes only a few of
// the relation's settings, and a later sweep removes the others. Until then they do no harm, since relation ids
// are never used again.
func (tx *Tx) RemoveRelationIfDone(r Relation) error {
	done, err := tx.isRelationDone(r)
	if err != nil {
		return err
	}
	if !done {
		return nil
	}

	tx.keys.Remove(keys.Relation(r.ID))
	for _, e := range r.Endpoints {
		tx.keys.Remove(keys.ServiceRelation(e.Service, r.ID))
	}
	if err := tx.keys.RemoveFew(keys.RelationSettings(r.ID), keys.Apps(r.ID)); err != nil {
		return err
	}

	for _, e := range r.Endpoints {
		if err := tx.removeServiceIfDone(e.Service); err != nil {
			return err
		}
	}

	return nil
}

// isRelationDone reports whether the relation is dying and has no members.
func (tx *Tx) isRelationDone(r Relation) (bool, error) {
	if r.Life == Alive {
		return false, nil
	}
	return tx.keys.IsPrefixEmpty(keys.Members(r.ID))
}

// ForceRemoveUnit removes a unit and its subordinates at once, in any state. If the unit has an agent, the
// agent terminates the running hook and cleans up, without running other hooks. ForceRemoveUnit works in
// batches; after an interruption call it again. It returns ErrNotFound if there is no such unit.
func (s *State) ForceRemoveUnit(ctx context.Context, name string) error {
	var u Unit
	err := s.Update(ctx, func(tx *Tx) (err error) {
		if u, err = tx.Unit(name); err != nil {
			return err
		}

		// DestroyUnit removes a unit that no agent has touched. It also removes the unit's machine if the
		// machine was created for the unit.
		untouched, err := tx.isUntouched(u)
		if err != nil {
			return err
		}
		if untouched {
			return tx.DestroyUnit(name)
		}

		return tx.changeUnit(name, func(u *Unit) { u.Life = Dead })
	})
	if err != nil {
		return err
	}

	for _, sub := range u.Subordinates {
		if err := s.ForceRemoveUnit(ctx, sub); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}

	// This does nothing if DestroyUnit has removed the unit.
	return RemoveUnit(ctx, s.Update, name)
}

// ForceDestroyRelation removes a relation at once. Members that have agents still run their last hooks of the
// relation. It works in batches; after an interruption call it again. It returns ErrNotFound if there is no
// such relation, and ErrInUse for a peer relation.
func (s *State) ForceDestroyRelation(ctx context.Context, id int) error {
	if err := s.Update(ctx, func(tx *Tx) error { return tx.DestroyRelation(id) }); err != nil {
		return err
	}
	return s.removeMembers(ctx, id)
}

// removeMembers makes all members leave a dying relation. The departure of the last member removes the
// relation.
func (s *State) removeMembers(ctx context.Context, id int) error {
	members, err := Read(ctx, s, func(v *View) ([]Member, error) { return v.Members(id) })
	if err != nil {
		return err
	}
	return inBatches(ctx, s.Update, members, func(tx *Tx, m Member) error { return tx.LeaveRelation(id, m.Unit) })
}

// ForceDestroyService removes a service at once with its units and relations, as ForceRemoveUnit and
// ForceDestroyRelation do. It returns ErrNotFound if there is no such service.
func (s *State) ForceDestroyService(ctx context.Context, name string) error {
	return s.destroyService(ctx, name, func(relations []int, units []string) error {
		for _, unit := range units {
			if err := s.ForceRemoveUnit(ctx, unit); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}

		if err := inBatches(ctx, s.Update, relations, (*Tx).destroyRelation); err != nil {
			return err
		}

		for _, id := range relations {
			if err := s.removeMembers(ctx, id); err != nil {
				return err
			}
		}

		return nil
	})
}
