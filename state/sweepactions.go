package state

import (
	"context"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// sweepActions spares actions that were asked for after before.
func (s *State) sweepActions(ctx context.Context, before time.Time) error {
	old, err := Read(ctx, s, func(v *View) ([]string, error) { return v.oldActions(before) })
	if err != nil {
		return err
	}
	return s.space.RemoveKeys(ctx, old) // ids are never used again
}

func (v *View) oldActions(before time.Time) (stale []string, err error) {
	kvs, err := v.keys.List(keys.Actions)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		a, err := keyspace.Decode[Action](kv)
		if err != nil {
			return nil, err
		}
		there, err := v.keys.HasUnguarded(keys.Unit(a.Unit))
		if err != nil {
			return nil, err
		}
		if _, ok := keys.CutInt(kv.Key, keys.Actions); ok && !there && a.Enqueued.Before(before) {
			stale = append(stale, kv.Key)
		}
	}
	return stale, nil
}
