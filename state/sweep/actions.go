package sweep

import (
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// oldActions spares actions that were asked for after before.
func oldActions(v *state.View, before time.Time) (stale []string, err error) {
	kvs, err := v.Keys().List(keys.Actions)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		a, err := keyspace.Decode[state.Action](kv)
		if err != nil {
			return nil, err
		}
		there, err := v.Keys().HasUnguarded(keys.Unit(a.Unit))
		if err != nil {
			return nil, err
		}
		if _, ok := keys.CutInt(kv.Key, keys.Actions); ok && !there && a.Enqueued.Before(before) {
			stale = append(stale, kv.Key)
		}
	}
	return stale, nil
}
