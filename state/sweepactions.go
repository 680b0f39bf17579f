package state

import (
	"context"
	"slices"
	"time"
)

// sweepActions spares actions that were asked for after before.
func (s *State) sweepActions(ctx context.Context, before time.Time) error {
	var old []int
	err := s.View(ctx, func(v *View) (err error) {
		old, err = v.oldActions(before)
		return err
	})
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(old, maxRemovedKeys) {
		err := s.Update(ctx, func(tx *Tx) error {
			for _, id := range ids {
				tx.remove(actionKey(id)) // no condition: ids are never used again
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *View) oldActions(before time.Time) (old []int, err error) {
	kvs, err := v.list(actionsPrefix)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		a, err := decode[Action](kv)
		if err != nil {
			return nil, err
		}
		there, err := v.hasUnguarded(unitKey(a.Unit))
		if err != nil {
			return nil, err
		}
		id, ok := cutInt(kv.Key, actionsPrefix)
		if ok && !there && a.Enqueued.Before(before) {
			old = append(old, id)
		}
	}
	return old, nil
}
