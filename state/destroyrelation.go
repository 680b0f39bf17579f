package state

import (
	"errors"

	"bijou/state/keys"
)

// DestroyRelation makes a relation dying, for its members to leave; one that has
// none is removed at once. A peer relation goes with its service only.
func (tx *Tx) DestroyRelation(id int) error {
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	if r.IsPeer() {
		return refuse(ErrInUse, "cannot destroy %s: it is a peer relation of service %q, and goes with it", r, r.Endpoints[0].Service)
	}
	return tx.destroyRelation(id)
}

func (tx *Tx) destroyRelation(id int) error {
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	r.Life = Dying
	if err := tx.putRelation(r); err != nil {
		return err
	}
	return tx.RemoveRelationIfDone(r)
}

// RemoveRelationIfDone removes a dying relation without members, and the dying services
// that waited for it. Settings that do not fit into the transaction are left for Sweep:
// ids are never used again, so they are in nobody's way.
func (tx *Tx) RemoveRelationIfDone(r Relation) error {
	if r.Life == Alive {
		return nil
	}
	if empty, err := tx.keys.IsPrefixEmpty(keys.Members(r.ID)); err != nil || !empty {
		return err
	}
	tx.keys.Remove(keys.Relation(r.ID))
	for _, e := range r.Endpoints {
		tx.keys.Remove(keys.ServiceRelation(e.Service, r.ID))
	}
	if err := tx.keys.RemoveFew(keys.RelationSettings(r.ID), keys.Apps(r.ID)); err != nil {
		return err
	}
	var errs []error
	for _, e := range r.Endpoints {
		errs = append(errs, tx.removeServiceIfDone(e.Service))
	}
	return errors.Join(errs...)
}
