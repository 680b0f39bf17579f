package state

import (
	"context"
	"errors"
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/progress"
)

// DestroyService makes a service, its relations and its units dying; what no
// agent knows is removed at once, the rest when its agents are done. It works in
// batches; one that was interrupted is finished by calling it again.
func (s *State) DestroyService(ctx context.Context, name string) error {
	var relations []int
	var units []string
	err := s.Update(ctx, func(tx *Tx) (err error) {
		relations, units, err = tx.markServiceDying(name)
		return err
	})
	if err != nil {
		return err
	}
	update := withProgress(ctx, s.Update, progress.Steps{What: "relations of " + name + " ended", Total: len(relations)})
	err = inBatches(ctx, update, relations, func(tx *Tx, id int) error { return tx.destroyRelation(id) })
	if err == nil {
		update = withProgress(ctx, s.Update, progress.Steps{What: "units of " + name + " told to end", Total: len(units)})
		err = inBatches(ctx, update, units, func(tx *Tx, unit string) error { return tx.DestroyUnit(unit) })
	}
	if err != nil {
		return fmt.Errorf("cannot destroy service %q: %w", name, err)
	}
	return s.Update(ctx, func(tx *Tx) error { return tx.removeServiceIfDone(name) })
}

// DestroyService is State.DestroyService in one transaction: for services of a
// few units and relations.
func (tx *Tx) DestroyService(name string) error {
	relations, units, err := tx.markServiceDying(name)
	if err != nil {
		return err
	}
	for _, id := range relations {
		if err := tx.destroyRelation(id); err != nil {
			return err
		}
	}
	for _, unit := range units {
		if err := tx.DestroyUnit(unit); err != nil {
			return err
		}
	}
	return tx.removeServiceIfDone(name)
}

// markServiceDying keeps anything from being added to the service, and lists what it
// has. Of the units only the counter is a condition, since a thousand units change all
// the time; a new one takes a number.
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
	if _, _, err := tx.keys.Get(keys.UnitCounter(name)); err != nil {
		return nil, nil, err
	}
	for _, kv := range index {
		if id, ok := keys.CutInt(kv.Key, keys.ServiceRelations(name)); ok {
			relations = append(relations, id)
		}
	}
	kvs, err := tx.keys.ListUnguarded(keys.ServiceUnits(name))
	return relations, unitNames(kvs), err
}

func (tx *Tx) removeServiceIfDone(name string) error {
	s, err := tx.Service(name)
	if errors.Is(err, ErrNotFound) || err == nil && s.Life == Alive {
		return nil
	}
	if err != nil {
		return err
	}
	for _, prefix := range []string{keys.ServiceRelations(name), keys.ServiceUnits(name)} {
		if empty, err := tx.keys.IsPrefixEmpty(prefix); err != nil || !empty {
			return err
		}
	}
	tx.keys.Remove(keys.Service(name))
	if _, err = tx.keys.RemoveBelow(keys.ServiceResources(name), keyspace.MaxRemovedKeys); err != nil {
		return err
	}
	_, err = tx.keys.RemoveBelow(keys.BelowService(name), batchSize)
	return err
}
